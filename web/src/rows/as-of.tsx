import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { formatInstant } from '../ui/format.ts';

interface AsOfProps {
  /** The instant that is shown; empty for now. */
  readonly at: string;
  /** Called with the instant to show, in UTC; empty for now. */
  readonly onChoose: (at: string) => void;
}

/** Chooses the instant as of which something is read. */
export function AsOf({ at, onChoose }: AsOfProps) {
  const { model } = useApp();
  const [text, setText] = useState(at.slice(0, 'yyyy-MM-ddTHH:mm:ss'.length));
  const show = (event: Event) => {
    event.preventDefault();
    if (text !== '') onChoose(`${text.length === 'yyyy-MM-ddTHH:mm'.length ? `${text}:00` : text}Z`);
  };
  return (
    <form class="actions as-of" aria-label="As of" onSubmit={show}>
      <label>
        As of (UTC, up to {model.backup?.days} days ago)
        <input
          type="datetime-local"
          step={1}
          required
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <button type="submit" class="secondary outline">
        Show
      </button>
      {at !== '' && (
        <button type="button" class="secondary outline" onClick={() => onChoose('')}>
          Back to now
        </button>
      )}
      {at !== '' && <p role="status">As it was on {formatInstant(at)}. Nothing here can be changed.</p>}
    </form>
  );
}
