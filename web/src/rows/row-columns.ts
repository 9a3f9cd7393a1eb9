import { type Entity, labelField, type Roles, type Values } from '../api/model.ts';
import { joinNames } from '../ui/format.ts';
import { toText } from '../ui/value.tsx';

interface RowColumns {
  /** The fields to show; the one with the link of the row comes first, so that it is in view on every screen. */
  readonly columns: readonly string[];
  /** Fields of the key with the same value in all rows, which have no column. */
  readonly constants: readonly string[];
}

/** How a table shows some fields of rows. */
export function arrangeColumns(
  entity: Entity,
  user: Roles,
  fields: readonly string[],
  rows: readonly Values[],
): RowColumns {
  const [first] = rows;
  const keyFields = fields.filter((field) => entity.key.fields.includes(field));
  const constants = keyFields.filter((field) => rows.length > 1 && rows.every((row) => row[field] === first?.[field]));
  const shown = fields.filter((field) => !constants.includes(field));
  const label = labelField(entity, user);
  const name = shown.find((field) => field === label) ?? shown.find((field) => keyFields.includes(field));
  const isMachineKey = (field: string) => keyFields.includes(field) && entity.fields[field]?.schema.format === 'uuid';
  const others = shown.filter((field) => field !== name);
  // Ids that say nothing to people come last.
  const rest = [...others.filter((field) => !isMachineKey(field)), ...others.filter(isMachineKey)];
  return { columns: name === undefined ? rest : [name, ...rest], constants };
}

/** `department Sales in each row`. */
export function sayConstants(fields: readonly string[], row: Values = {}): string {
  return `${joinNames(
    fields.map((field) => `${field} ${toText(row[field])}`),
    'and',
  )} in each row`;
}
