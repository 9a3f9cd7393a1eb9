import { type Entity, readableFields, type Values } from '../api/model.ts';
import { referredRow } from '../api/referred-row.ts';
import { useApp } from '../app/context.ts';
import { FullValue } from '../ui/value.tsx';
import { referredAddress } from './row-address.ts';
import { useReferredLabel } from './use-referred-label.ts';

/** The fields of a row with their values. A reference leads to its row. */
export function FieldList({ entity, values }: { readonly entity: Entity; readonly values: Values }) {
  const { user } = useApp();
  // Children and files have sections of their own.
  const fields = readableFields(entity, user).filter(
    (field) => values[field] !== undefined && !Object.hasOwn(entity.attachments, field),
  );
  return (
    <dl class="field-list">
      {fields.map((field) => (
        <div key={field}>
          <dt>
            {field} <FieldNotes entity={entity} field={field} />
          </dt>
          <dd>
            <FieldValue entity={entity} field={field} values={values} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function FieldNotes({ entity, field }: { readonly entity: Entity; readonly field: string }) {
  const described = entity.fields[field];
  const notes = [
    entity.key.fields.includes(field) ? 'key' : '',
    described?.encrypted ? 'encrypted' : '',
    described?.large ? 'large' : '',
    described?.derived ? 'derived' : '',
    described?.kept ? 'set by the app' : '',
    described?.restricted ? 'restricted' : '',
  ].filter(Boolean);
  return <small>{notes.join(', ')}</small>;
}

function FieldValue(props: { readonly entity: Entity; readonly field: string; readonly values: Values }) {
  const { entity, field, values } = props;
  const { model } = useApp();
  const value = values[field];
  const label = useReferredLabel(entity, Object.hasOwn(entity.references, field) ? field : undefined, values);
  const reference = entity.references[field];
  const target = model.entities.get(reference?.to ?? '');
  const row = reference && target && value !== null ? referredRow(target, reference, String(value), values) : undefined;
  return target && row ? (
    <a href={referredAddress(target, row)}>
      {label !== undefined && `${label} · `}
      <FullValue value={value} />
    </a>
  ) : (
    <FullValue value={value} />
  );
}
