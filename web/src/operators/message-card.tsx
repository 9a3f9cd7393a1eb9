import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatAge, formatInstant, plural } from '../ui/format.ts';

export interface FailedMessage {
  readonly id: string;
  readonly queue: string;
  readonly reason: string;
  readonly attempts: number;
  readonly insertedAt: string;
  readonly recordedAt: string;
  /** Absent for a user who may not read the whole entity. */
  readonly text?: string;
}

interface MessageCardProps {
  readonly message: FailedMessage;
  readonly isBusy: boolean;
  readonly isChosen: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly onReplay: () => void;
  readonly onDrop: () => Promise<void>;
}

export function MessageCard({ message, isBusy, isChosen, onChoose, onReplay, onDrop }: MessageCardProps) {
  const { id, queue, reason, attempts, insertedAt, recordedAt, text } = message;
  const [isAsking, setAsking] = useState(false);
  return (
    <li class="card">
      <div class="message-head">
        <input
          type="checkbox"
          checked={isChosen}
          aria-label={`Select the message of ${queue}: ${reason}`}
          onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
        />
        <div>
          <strong>{reason}</strong>
          <p class="muted">
            <code>{queue}</code> {plural(attempts, 'attempt')}, sent {formatInstant(insertedAt)}, failed{' '}
            {formatAge(recordedAt)} ago
          </p>
        </div>
      </div>
      <details>
        <summary>Payload</summary>
        {text === undefined ? (
          <p class="muted">Only roles that may read the whole entity see it, because it has keys.</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          <pre tabIndex={0}>{formatPayload(text)}</pre>
        )}
        <small class="muted">{id}</small>
      </details>
      <div class="actions">
        <button type="button" disabled={isBusy} onClick={onReplay}>
          Replay
        </button>
        <button type="button" class="secondary outline" disabled={isBusy} onClick={() => setAsking(true)}>
          Delete
        </button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title="Delete the message"
          confirm="Delete"
          isDangerous
          act={onDrop}
          onClose={() => setAsking(false)}
        >
          <p>
            The message is deleted from the list and from nowhere else. Its work is then not done: an index, a list or
            an archive may stay stale until a check repairs the entity. This cannot be undone.
          </p>
          <p>
            <strong>2 storage transactions</strong>
          </p>
        </ConfirmDialog>
      )}
    </li>
  );
}

function formatPayload(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
