import { useState } from 'preact/hooks';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Stored } from '../api/entity-client.ts';
import { canTake, type Entity, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { ActionDialog } from './action-dialog.tsx';
import { ChildCounts } from './child-counts.tsx';
import { MoveDialog, type Moved } from './move-dialog.tsx';
import { findUndoObstacle } from './undo-delete.ts';

interface RowActionsProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  readonly stored: Stored;
  /** Absent if the row cannot be changed. */
  readonly onEdit?: () => void;
  readonly onDeleted: () => void;
  readonly onMoved: (moved: Moved) => void;
  /** Reads the row again. */
  readonly reload: () => void;
}

/** What can be done with a row. Each action shows first what it would read, write and send. */
export function RowActions({ entity, rowKey, stored, onEdit, onDeleted, onMoved, reload }: RowActionsProps) {
  const { api, model, user } = useApp();
  const [open, setOpen] = useState<'delete' | 'archive' | 'move'>();
  const close = () => setOpen(undefined);
  const client = api.entity(entity.name);
  const explain = api.explain(entity.name);
  const isRemovable = canTake(entity, 'delete', model, user);
  // A row of an archive can only be deleted.
  const isMovable = canTake(entity, 'update', model, user) && entity.movable.length > 0;
  const isArchivable = isRemovable && entity.archive !== undefined;
  const obstacle = findUndoObstacle(entity, user, stored.values);
  const remove = async () => {
    try {
      await client.delete(rowKey, { ifMatch: stored.etag });
    } catch (error) {
      if (!(error instanceof RowkeyClientError) || error.code !== 'etag-mismatch') throw error;
      // The next attempt has the ETag of the row that is then shown.
      reload();
      throw new Error('The row or its children changed since the page read them. Check them, then delete again.');
    }
  };
  const moved = (to: Moved) => {
    close();
    onMoved(to);
  };
  return (
    <div class="actions">
      {onEdit && (
        <button type="button" onClick={onEdit}>
          Edit
        </button>
      )}
      {isMovable && (
        <button type="button" class="secondary outline" onClick={() => setOpen('move')}>
          Move
        </button>
      )}
      {isArchivable && (
        <button type="button" class="secondary outline" onClick={() => setOpen('archive')}>
          Archive
        </button>
      )}
      {isRemovable && (
        <button type="button" class="secondary outline" onClick={() => setOpen('delete')}>
          Delete
        </button>
      )}
      {open === 'delete' && (
        <ActionDialog
          entity={entity}
          row={stored.values}
          title="Delete the row"
          confirm="Delete"
          isDangerous
          id={stored.etag}
          explain={(signal) => explain.delete(rowKey, { signal })}
          act={remove}
          onDone={() => {
            close();
            onDeleted();
          }}
          onClose={close}
        >
          <ChildCounts entity={entity} rowKey={rowKey} etag={stored.etag} />
          <p>
            {obstacle === undefined
              ? 'The delete can be undone until this page is left.'
              : `The delete cannot be undone: ${obstacle}.`}
          </p>
        </ActionDialog>
      )}
      {open === 'archive' && (
        <ActionDialog
          entity={entity}
          row={stored.values}
          title={`Archive the row in ${entity.archive}`}
          confirm="Archive"
          explain={(signal) => explain.archive(rowKey, { signal })}
          act={async () => (await client.archive(rowKey)).done()}
          onDone={() => moved({ text: 'Archived.', entity: entity.archive ?? '', key: rowKey })}
          onClose={close}
        />
      )}
      {open === 'move' && (
        <MoveDialog entity={entity} rowKey={rowKey} values={stored.values} onMoved={moved} onClose={close} />
      )}
    </div>
  );
}
