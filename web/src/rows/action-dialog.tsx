import type { ComponentChildren } from 'preact';
import type { Explanation } from '../api/entity-client.ts';
import { canReadWhole, type Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { StepList } from '../ui/step-list.tsx';
import { useLoaded } from '../ui/use-loaded.ts';

interface ActionDialogProps {
  readonly entity: Entity;
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
  const { entity, title, confirm, isDangerous = false, explain, id = '', act, onDone, onClose, children } = props;
  const { user } = useApp();
  return (
    <ConfirmDialog
      title={title}
      confirm={confirm}
      isDangerous={isDangerous}
      isReady={explain !== undefined}
      act={act}
      onDone={onDone}
      onClose={onClose}
    >
      {children}
      {explain && canReadWhole(entity, user) && <Explained key={id} explain={explain} id={id} />}
      {!canReadWhole(entity, user) && (
        <p class="muted">Only roles that read every field of {entity.name} see what the action would do.</p>
      )}
    </ConfirmDialog>
  );
}

function Explained(props: { readonly explain: (signal: AbortSignal) => Promise<Explanation>; readonly id: string }) {
  const { result, error } = useLoaded(props.explain, props.id);
  if (error !== undefined) return <ErrorNotice error={error} />;
  return result ? <StepList explanation={result} /> : <Loading what="what it would do" />;
}
