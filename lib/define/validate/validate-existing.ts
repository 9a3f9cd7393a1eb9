import { OWN_TABLES } from '../../base/engine-names.ts';
import { isSame } from '../../base/is-same.ts';
import { canBeStored, OWN_PROPERTY, storedFields } from '../codec/existing-rows.ts';
import { optionsWith } from '../declaration/declaration.ts';
import type { Entity } from '../declaration/entity.ts';
import { tablesOf } from '../places/index-entries.ts';

/** What a declaration over a table of another program must be. */

const RESERVED: readonly string[] = [...OWN_TABLES, 'tables'];

/** Yields a sentence for each error of an entity with `existing`. `entities` are those of the model. */
export function* existingErrors(entity: Entity, entities: readonly Entity[]): Generator<string> {
  const { existing, table, columns, schema } = entity;
  if (!existing) return;
  for (const option of refusedOptions(entity))
    yield `it has existing, and ${option}. Remove that: in a table of another program, an entity is one row, with indexes and totals in tables of their own.`;
  // Storage ignores the case of a name.
  const isSameTable = (other: string) => other.toLowerCase() === table.toLowerCase();
  for (const other of entities) {
    const [own, ...further] = tablesOf(other);
    if (further.some(isSameTable) || (own !== undefined && isSameTable(own) && !other.existing))
      yield `its table is also one of "${other.name}", for which storage ignores the case of the name. Give one of them another table.`;
    else if (own !== undefined && isSameTable(own) && own !== table)
      yield `its table is "${table}", and "${own}" in "${other.name}", which storage has as one. Write both as the table was created.`;
  }
  if (RESERVED.includes(table.toLowerCase())) yield `the table name "${table}" is reserved.`;
  for (const name of Object.keys(existing.where ?? {}))
    if (storedFields(entity).some((field) => field.name === name))
      yield `existing.where has the property "${name}", and existing.properties has it for a field, which could not be changed. Leave the field out of the schema.`;
  for (const field of Object.keys(existing.properties ?? {}))
    if (!Object.hasOwn(schema.shape, field))
      yield `existing.properties has "${field}", which the schema does not have. Add it to the schema, or correct the name.`;
  const fields = storedFields(entity);
  for (const { field, name, type } of fields) {
    const column = columns[field];
    if (column && !canBeStored(column, type))
      yield `existing.properties stores "${field}" as ${type}, which its schema does not allow: use z.boolean() for a Boolean, z.int() or a text of digits for an Int64, z.int() within 32 bits for an Int32, z.number() for a Double, and texts for the others.`;
    if (name.startsWith(OWN_PROPERTY) || ['PartitionKey', 'RowKey', 'Timestamp'].includes(name))
      yield `existing.properties names the property "${name}" for "${field}". Names that begin with ${OWN_PROPERTY} are those of the engine, and keys and time stamps are not properties: leave out a field of the key.`;
    const twin = fields.find((one) => one.name === name && one.field !== field);
    if (twin && twin.field < field)
      yield `existing.properties names "${name}" for "${twin.field}" and "${field}". Each field needs a property of its own.`;
  }
}

/** The options of the entity that need rows of another form. */
function refusedOptions(entity: Entity): string[] {
  const { indexes, access, series } = entity;
  const absent: Readonly<Record<string, unknown>> = optionsWith('absent');
  const options = Object.keys(optionsWith('notInExisting')) as (keyof Entity)[];
  const used: Readonly<Record<string, boolean>> = {
    ...Object.fromEntries(options.map((option) => [option, !isSame(entity[option], absent[option])])),
    'children of other declarations': entity.children.length > 0,
    'a count in another declaration': entity.countedBy.length > 0,
    'copies in another declaration': entity.dependents.length > 0,
    'key.former': entity.formerKey !== undefined,
    'access.own': access.own !== undefined,
    'an index in its own partition': Object.values(indexes).some(({ remote }) => !remote),
    'a data series': series !== undefined,
  };
  return Object.keys(used).filter((option) => used[option]);
}
