import { useState } from 'preact/hooks';
import { isObject, toMergePatch } from '../../../lib/base/merge-patch.ts';
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
        needsPut(entity, patch)
          ? client.replace(rowKey, toWhole(entity, base.values, patch), { ifMatch: base.etag, signal })
          : client.update(rowKey, toSent(base.values, patch), { ifMatch: base.etag, signal }),
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
      entity={entity}
      fields={formFields(entity, user, 'change')}
      initial={stored.values}
      submitLabel="Save"
      onSubmit={({ patch }) => save(patch, stored)}
      onCancel={onCancel}
      {...(canReadWhole(entity, user)
        ? {
            explain: ({ patch }: { readonly patch: Values }) => {
              const explain = api.explain(entity.name);
              return needsPut(entity, patch)
                ? explain.replace(rowKey, toWhole(entity, stored.values, patch))
                : explain.update(rowKey, toSent(stored.values, patch));
            },
          }
        : {})}
    />
  );
}

/** A PATCH merges objects: the members that the change removes are null. */
function toSent(before: Values, patch: Values): Values {
  return Object.fromEntries(Object.entries(patch).map(([field, value]) => [field, toMergePatch(before[field], value)]));
}

/** A PATCH does not change encrypted fields, nor sets a member of an object to null. A PUT would remove the groups of a split, which the page has not read. */
function needsPut({ fields, split }: Entity, patch: Values): boolean {
  return (
    Object.keys(split).length === 0 &&
    Object.entries(patch).some(([field, value]) => fields[field]?.encrypted || isObject(value))
  );
}

/** The whole row after a change. A field that cannot be read stays null, which the API rejects, unless the change replaces it. */
function toWhole(entity: Entity, values: Values, patch: Values): Values {
  const own = Object.entries(values).filter(([field]) => {
    const described = entity.fields[field];
    return described && !described.derived && !described.kept && patch[field] === undefined;
  });
  const changed = Object.entries(patch).filter(([, value]) => value !== null);
  return Object.fromEntries([...own, ...changed]);
}
