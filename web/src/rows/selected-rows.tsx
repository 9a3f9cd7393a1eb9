import { useState } from 'preact/hooks';
import { canTake, describeRow, type Entity, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { FieldControl } from '../forms/field-control.tsx';
import { parseField } from '../forms/fields.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { joinNames, plural } from '../ui/format.ts';
import { editableFields } from './cell-editor.tsx';

/** The largest batch that the API accepts. */
const MOST_ACTIONS = 100;
const MOST_NAMED = 10;

interface SelectedRowsProps {
  readonly entity: Entity;
  readonly rows: readonly Values[];
  /** Selects all loaded rows. */
  readonly onAll: () => void;
  readonly onClear: () => void;
  /** Called for each row that was changed. */
  readonly onChanged: (row: Values, change: Values | 'deleted') => void;
}

/** What can be done with several rows at once, by batches. An action that fails does not stop the others. */
export function SelectedRows({ entity, rows, onAll, onClear, onChanged }: SelectedRowsProps) {
  const { api, model, user } = useApp();
  const [open, setOpen] = useState<'delete' | 'set'>();
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const fields = editableFields(entity, user);
  const field = fields.find((each) => each.name === name) ?? fields[0];
  const parsed = field && parseField(field, text);
  const keyOf = (row: Values) => Object.fromEntries(entity.key.fields.map((each) => [each, row[each]]));
  const write = async (toAction: (row: Values) => Values, change: Values | 'deleted') => {
    const failed: string[] = [];
    for (let start = 0; start < rows.length; start += MOST_ACTIONS) {
      const some = rows.slice(start, start + MOST_ACTIONS);
      const results = await api.entity(entity.name).batch(some.map(toAction));
      for (const [position, row] of some.entries()) {
        const { outcome, error } = results[position] ?? {};
        if (outcome !== 'failed') onChanged(row, change);
        else failed.push(`${describeRow(entity, user, row)}: ${error instanceof Error ? error.message : 'failed'}`);
      }
    }
    if (failed.length > 0)
      throw new Error(
        `${failed.length} of ${plural(rows.length, 'row')} stay as they were. ${failed.slice(0, MOST_NAMED).join(' ')}`,
      );
  };
  const close = () => setOpen(undefined);
  const named = rows.slice(0, MOST_NAMED).map((row) => describeRow(entity, user, row));
  const others = rows.length - named.length;
  const list = (
    <ul>
      {named.map((each) => (
        <li key={each}>{each}</li>
      ))}
      {others > 0 && <li>and {plural(others, 'other')}</li>}
    </ul>
  );
  return (
    <section class="actions selected" aria-label="Selected rows">
      <span role="status">{plural(rows.length, 'row')} selected</span>
      {fields.length > 0 && (
        <button type="button" class="secondary outline" onClick={() => setOpen('set')}>
          Set a field
        </button>
      )}
      {canTake(entity, 'delete', model, user) && (
        <button type="button" class="secondary outline" onClick={() => setOpen('delete')}>
          Delete selected
        </button>
      )}
      <button type="button" class="secondary outline" onClick={onAll}>
        Select all loaded
      </button>
      <button type="button" class="secondary outline" onClick={onClear}>
        Clear
      </button>
      {open === 'delete' && (
        <ConfirmDialog
          title={`Delete ${plural(rows.length, 'row')}`}
          subject={entity.name}
          confirm="Delete"
          isDangerous
          act={() => write((row) => ({ delete: keyOf(row) }), 'deleted')}
          onClose={close}
        >
          {list}
          <p>
            The deletes cannot be undone here.
            {entity.children.length > 0 && ` The children of the rows (${joinNames(entity.children, 'and')}) go along.`}
          </p>
        </ConfirmDialog>
      )}
      {open === 'set' && field && (
        <ConfirmDialog
          title={`Set a field of ${plural(rows.length, 'row')}`}
          subject={entity.name}
          confirm="Set"
          isReady={parsed?.problem === undefined}
          act={() => {
            const value = parsed?.problem === undefined ? (parsed?.value ?? null) : null;
            const change = { [field.name]: value ?? undefined };
            return write((row) => ({ patch: { ...keyOf(row), [field.name]: value } }), change);
          }}
          onClose={close}
        >
          <label>
            Field
            <select
              value={field.name}
              onChange={({ currentTarget }) => {
                setName(currentTarget.value);
                setText('');
              }}
            >
              {fields.map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </select>
          </label>
          <label for="new-value">New value</label>
          <FieldControl
            field={field}
            text={text}
            onText={(given) => setText(String(given))}
            common={{ id: 'new-value' }}
          />
          <p>
            <small>{parsed?.problem ?? (text === '' ? 'Without a value, the rows lose the field.' : field.hint)}</small>
          </p>
          {list}
        </ConfirmDialog>
      )}
    </section>
  );
}
