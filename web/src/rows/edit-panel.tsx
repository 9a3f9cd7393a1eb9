import { useState } from 'preact/hooks';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Cost } from '../api/cost.ts';
import type { Stored } from '../api/entity-client.ts';
import { canReadWhole, type Entity, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { formFields } from '../forms/fields.ts';
import { RowForm } from '../forms/row-form.tsx';
import { Notice } from '../ui/notice.tsx';
import { Conflict } from './conflict.tsx';

/** A change that was made, and what is needed to undo it. */
export interface Saved {
  readonly before: Values;
  readonly patch: Values;
  readonly etag: string;
  readonly costs: readonly Cost[];
}

interface EditPanelProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  readonly stored: Stored;
  readonly onSaved: (saved: Saved) => void;
  readonly onCancel: () => void;
}

/** The form of a row. If another caller changed the row meanwhile, both changes are shown side by side. */
export function EditPanel({ entity, rowKey, stored, onSaved, onCancel }: EditPanelProps) {
  const { api, user } = useApp();
  const [conflict, setConflict] = useState<{ readonly patch: Values; readonly current: Stored | undefined }>();
  const client = api.entity(entity.name);

  const save = async (patch: Values, base: Stored) => {
    if (Object.keys(patch).length === 0) return onCancel();
    try {
      const { result, costs } = await api.measure((signal) =>
        client.update(rowKey, patch, { ifMatch: base.etag, signal }),
      );
      onSaved({ before: base.values, patch, etag: result.etag, costs });
    } catch (error) {
      if (!(error instanceof RowkeyClientError) || error.code !== 'etag-mismatch') throw error;
      setConflict({ patch, current: error.current as Stored | undefined });
    }
  };

  if (conflict && !conflict.current)
    return (
      <Notice kind="bad">
        The row was deleted meanwhile. Your change was not saved.{' '}
        <button type="button" class="secondary outline" onClick={onCancel}>
          Close
        </button>
      </Notice>
    );
  if (conflict?.current) {
    const { current, patch } = conflict;
    return (
      <Conflict
        base={stored.values}
        mine={patch}
        theirs={current.values}
        onSave={(chosen) => save(chosen, current)}
        onDiscard={onCancel}
      />
    );
  }
  return (
    <RowForm
      fields={formFields(entity, user, 'change')}
      initial={stored.values}
      submitLabel="Save"
      onSubmit={({ patch }) => save(patch, stored)}
      onCancel={onCancel}
      {...(canReadWhole(entity, user)
        ? { explain: ({ patch }: { readonly patch: Values }) => api.explain(entity.name).update(rowKey, patch) }
        : {})}
    />
  );
}
