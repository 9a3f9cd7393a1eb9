import { useEffect, useRef, useState } from 'preact/hooks';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Stored } from '../api/entity-client.ts';
import { describeRow, type Entity, may, type Roles, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { UnsavedChanges } from '../app/unsaved-changes.tsx';
import { FieldControl } from '../forms/field-control.tsx';
import { type FieldText, type FormField, formFields, parseField, toFieldText } from '../forms/fields.ts';
import { useLoaded } from '../ui/use-loaded.ts';
import { toText } from '../ui/value.tsx';

/** The fields that one line can edit. A PATCH does not change encrypted fields, and merges objects. */
export function editableFields(entity: Entity, user: Roles): readonly FormField[] {
  if (entity.series || !may(entity, 'update', user)) return [];
  return formFields(entity, user, 'change').filter(({ name, input }) => {
    const { encrypted, large } = entity.fields[name] ?? {};
    return !encrypted && !large && input !== 'json' && input !== 'long' && !Object.hasOwn(entity.attachments, name);
  });
}

interface CellEditorProps {
  readonly entity: Entity;
  readonly row: Values;
  readonly field: string;
  readonly onSaved: (values: Values) => void;
  readonly onClose: () => void;
}

/** Edits one field of a row in its cell, under the ETag that the row has when the edit begins. Enter saves, and Escape closes. */
export function CellEditor({ entity, row, field, onSaved, onClose }: CellEditorProps) {
  const { api, user } = useApp();
  const described = editableFields(entity, user).find(({ name }) => name === field);
  const key = Object.fromEntries(entity.key.fields.map((name) => [name, row[name]]));
  const client = api.entity(entity.name);
  const { result, error } = useLoaded(
    (signal) => client.get(key, { select: [...entity.key.fields, field], signal }),
    JSON.stringify(key),
  );
  if (!described) return null;
  const save = async (value: unknown, { etag }: Stored) =>
    onSaved((await client.update(key, { [field]: value ?? null }, { ifMatch: etag })).values);
  const problem = error === undefined ? '' : error instanceof Error ? error.message : String(error);
  return result ? (
    <OpenCell {...{ field: described, stored: result, save, onClose }} name={describeRow(entity, user, row)} />
  ) : (
    <span role="status">{problem === '' ? '…' : problem}</span>
  );
}

interface OpenCellProps {
  readonly field: FormField;
  readonly name: string;
  readonly stored: Stored;
  readonly save: (value: unknown, stored: Stored) => Promise<void>;
  readonly onClose: () => void;
}

function OpenCell({ field, name, stored, save, onClose }: OpenCellProps) {
  const [base, setBase] = useState(stored);
  const before = toFieldText(field, stored.values[field.name]);
  const [text, setText] = useState<FieldText>(before);
  const [problem, setProblem] = useState('');
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>('input, select')?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const parsed = parseField(field, text);
    if (parsed.problem !== undefined) return setProblem(parsed.problem);
    if (text === before) return onClose();
    try {
      await save(parsed.value, base);
    } catch (error) {
      const current = error instanceof RowkeyClientError && error.code === 'etag-mismatch' ? error.current : undefined;
      if (current) {
        const now = current as Stored;
        setBase(now);
        setProblem(
          `the row changed meanwhile: the value is now “${toText(now.values[field.name])}”. Enter saves yours`,
        );
      } else setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form
      noValidate
      class="cell"
      ref={form}
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
      }}
    >
      {text !== before && <UnsavedChanges />}
      <FieldControl
        field={field}
        text={typeof text === 'string' ? text : ''}
        onText={setText}
        common={{ 'aria-label': `${field.name} of ${name}`, 'aria-invalid': problem === '' ? undefined : true }}
      />
      <button type="submit">Save</button>
      <button type="button" class="secondary outline" onClick={onClose}>
        Cancel
      </button>
      {problem !== '' && <small role="alert">{problem}</small>}
    </form>
  );
}
