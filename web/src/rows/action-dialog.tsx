import type { ComponentChildren } from 'preact';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Explanation } from '../api/entity-client.ts';
import { canReadWhole, describeRow, type Entity, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { StepList } from '../ui/step-list.tsx';
import { type Loaded, useLoaded } from '../ui/use-loaded.ts';

interface ActionDialogProps {
  readonly entity: Entity;
  /** The row to change: its key, and the field that names it if the page has read that. */
  readonly row: Values;
  readonly title: string;
  readonly confirm: string;
  /** True if what is lost may not come back. */
  readonly isDangerous?: boolean;
  /** Absent until what to do is known. */
  readonly explain: ((signal: AbortSignal) => Promise<Explanation>) | undefined;
  /** Names what is explained. */
  readonly id?: string;
  readonly act: () => Promise<unknown>;
  /** Shows on the page what was done. */
  readonly onDone: () => void;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** Shows what an action would read, write and send before it is confirmed. */
export function ActionDialog(props: ActionDialogProps) {
  const { entity, row, title, confirm, isDangerous = false, explain, id = '', act, onDone, onClose, children } = props;
  const { user } = useApp();
  const isExplained = explain !== undefined && canReadWhole(entity, user);
  const explained = useLoaded(async (signal) => (isExplained ? explain(signal) : undefined), `${isExplained} ${id}`);
  // Its steps name rows of every entity in the table, of which the caller may not read each.
  const isHidden = explained.error instanceof RowkeyClientError && explained.error.code === 'forbidden';
  const isRefused = explained.error instanceof RowkeyClientError && explained.error.code === 'referenced';
  return (
    <ConfirmDialog
      title={title}
      subject={`${entity.name}: ${describeRow(entity, user, row)}`}
      confirm={confirm}
      isDangerous={isDangerous}
      isReady={explain !== undefined && !isRefused}
      act={act}
      onDone={onDone}
      onClose={onClose}
    >
      {(!isRefused || !isDangerous) && children}
      {isExplained && !isHidden && <Explained {...explained} />}
      {isRefused && <p>Change or delete the rows that refer to this row, then open the dialog again.</p>}
      {(isHidden || !canReadWhole(entity, user)) && (
        <p class="muted">Only roles that read every row of its table, with all fields, see what the action would do.</p>
      )}
    </ConfirmDialog>
  );
}

function Explained({ result, error }: Pick<Loaded<Explanation | undefined>, 'result' | 'error'>) {
  if (error !== undefined) return <ErrorNotice error={error} />;
  return result ? <StepList explanation={result} /> : <Loading what="what it would do" />;
}
