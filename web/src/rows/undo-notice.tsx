import { useState } from 'preact/hooks';
import { formatCosts } from '../api/cost.ts';
import type { Entity, Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { toUndo } from '../forms/fields.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import type { Saved } from './edit-panel.tsx';

interface UndoNoticeProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  readonly saved: Saved;
  readonly onDone: () => void;
}

/** Says that a change was saved, and takes it back on demand. The ETag prevents that another caller's change is lost. */
export function UndoNotice({ entity, rowKey, saved, onDone }: UndoNoticeProps) {
  const { api } = useApp();
  const [error, setError] = useState<unknown>();
  const { patch, before, etag, costs } = saved;
  // The former value of a field that could not be read is not known, and a PATCH does not change encrypted fields.
  const canUndo = Object.keys(patch).every((field) => before[field] !== null && !entity.fields[field]?.encrypted);
  const undo = () =>
    api
      .entity(entity.name)
      .update(rowKey, toUndo(patch, before), { ifMatch: etag })
      .then(onDone, (failed: unknown) => setError(failed));
  return (
    <>
      <Notice kind="good">
        Saved {Object.keys(patch).join(', ')} ({formatCosts(costs)}).{' '}
        {canUndo && (
          <button type="button" class="secondary outline" onClick={undo}>
            Undo
          </button>
        )}
      </Notice>
      <ErrorNotice error={error} />
    </>
  );
}
