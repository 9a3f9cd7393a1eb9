import { useState } from 'preact/hooks';
import type { Entity, Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { type FormField, formFields, parseField } from '../forms/fields.ts';
import { ActionDialog } from './action-dialog.tsx';

/** Where a row is that was moved or archived. */
export interface Moved {
  readonly text: string;
  readonly entity: string;
  readonly key: Values;
}

interface MoveDialogProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  readonly values: Values;
  readonly onMoved: (moved: Moved) => void;
  readonly onClose: () => void;
}

/** Asks for the new values of the movable fields. */
export function MoveDialog({ entity, rowKey, values, onMoved, onClose }: MoveDialogProps) {
  const { api, user } = useApp();
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [checked, setChecked] = useState('');
  const fields = formFields(entity, user, 'create').filter(({ name }) => entity.movable.includes(name));
  const to = Object.fromEntries(fields.map((field) => [field.name, valueIn(field, texts, rowKey)]));
  const isComplete = fields.every(({ name }) => to[name] !== undefined);
  const id = JSON.stringify(to);
  const isExplained = isComplete && checked === id;
  return (
    <ActionDialog
      entity={entity}
      row={values}
      title="Move the row"
      confirm="Move"
      id={id}
      explain={isExplained ? (signal) => api.explain(entity.name).move(rowKey, to, { signal }) : undefined}
      act={async () => (await api.entity(entity.name).move(rowKey, to)).done()}
      onDone={() => onMoved({ text: 'Moved.', entity: entity.name, key: { ...rowKey, ...to } })}
      onClose={onClose}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setChecked(id);
        }}
      >
        {fields.map(({ name }) => (
          <label key={name}>
            New {name}
            <input
              required
              autocomplete="off"
              value={texts[name] ?? ''}
              placeholder={String(rowKey[name])}
              onInput={({ currentTarget }) => setTexts({ ...texts, [name]: currentTarget.value })}
            />
          </label>
        ))}
        {!isExplained && (
          <button type="submit" class="secondary" disabled={!isComplete}>
            Show what it would do
          </button>
        )}
      </form>
    </ActionDialog>
  );
}

/** Returns the value of a movable field. If there are several, a field that is left empty keeps its value. */
function valueIn(field: FormField, texts: Readonly<Record<string, string>>, rowKey: Values): unknown {
  const text = texts[field.name] ?? '';
  if (text === '') return Object.values(texts).some(Boolean) ? rowKey[field.name] : undefined;
  const parsed = parseField(field, text);
  return parsed.problem === undefined ? parsed.value : undefined;
}
