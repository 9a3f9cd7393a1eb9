import type { Comparison, Limit } from '../define/declaration/comparison.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { keyRange, lastOfPrefix, type Part, parseKey, rangeOfPrefix } from '../define/keys/key-template.ts';
import { projectionsOf } from '../define/places/index-entries.ts';
import { fieldSchemas } from '../define/schema/field-schema.ts';
import type { TableSasRequest } from '../storage/table-sas.ts';

/** The row keys of a signature, both inclusive; all keys without them. */
export type RowRange = Pick<TableSasRequest, 'firstRow' | 'lastRow'>;

/**
 * The range of row keys that has the rows within a limit and no others, for a signature, in a partition that the limit does not compare.
 * Undefined if there is no such range: the limit compares other fields than the first ones of the row key, or has several ranges.
 */
export function rowsWithin(entity: Entity, limit: Limit): RowRange | undefined {
  const ranges = limit.map((comparisons) => rowsOf(entity, comparisons));
  const [first] = ranges;
  const isOne = ranges.every((range) => range?.firstRow === first?.firstRow && range?.lastRow === first?.lastRow);
  return isOne ? first : undefined;
}

function rowsOf(entity: Entity, comparisons: readonly Comparison[]): RowRange | undefined {
  const { row, series } = entity;
  // The further rows of a series follow its first one.
  if (series) return undefined;
  const byField = Map.groupBy(comparisons, ({ field }) => field);
  const given: Record<string, string | number> = {};
  for (const part of row.parts) {
    const compared = byField.get(part.field);
    if (!compared || part.hash || part.newestFirst) return undefined;
    byField.delete(part.field);
    const value = onlyValue(compared);
    if (value !== undefined) given[part.field] = value;
    const bounds = value === undefined ? boundsIn(entity, part, compared) : {};
    if (!bounds) return undefined;
    if (byField.size === 0) return toRange(entity, given, bounds);
    if (value === undefined) return undefined;
  }
  return undefined;
}

function onlyValue([one, ...more]: readonly Comparison[]): string | number | undefined {
  const [value] = one?.operator === 'eq' && more.length === 0 ? one.values : [];
  return typeof value === 'boolean' ? undefined : value;
}

interface Bounds {
  readonly from?: string;
  readonly to?: string;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The bounds of a part of the row key, if keys have the order of values there. Both are read as prefixes. */
function boundsIn({ schema }: Entity, { field, width }: Part, compared: readonly Comparison[]): Bounds | undefined {
  const boundOf = (operator: Comparison['operator']) => compared.find((one) => one.operator === operator)?.values[0];
  const [from, to, before] = [boundOf('ge'), boundOf('le'), boundOf('lt')];
  if (typeof from === 'string' && to === undefined && before === rangeOfPrefix(from).before) return { from, to: from };
  if (from === undefined || to === undefined) return undefined;
  // Texts of other lengths and characters are in another order in a key.
  const isDay = fieldSchemas(schema)[field]?.format === 'date' && [from, to].every((day) => DAY.test(String(day)));
  const isInWidth = (bound: unknown) =>
    width !== undefined && Number.isSafeInteger(bound) && Number(bound) >= 0 && String(bound).length <= width;
  return isDay || (isInWidth(from) && isInWidth(to)) ? { from: String(from), to: String(to) } : undefined;
}

function toRange(
  entity: Entity,
  given: Readonly<Record<string, string | number>>,
  bounds: Bounds,
): RowRange | undefined {
  const { table, partition, row } = entity;
  const isPrefix = bounds.from === bounds.to;
  const { from } = keyRange(row, bounds, given);
  const common = isPrefix ? from : keyRange(row, {}, given).from;
  // A copy or a list in the partition may be of a row that is out of reach.
  const isMixed = projectionsOf(entity).some(
    ({ at }) =>
      at.table === table &&
      at.partition.template === partition.template &&
      (at.row.head.startsWith(common) || common.startsWith(at.row.head)),
  );
  if (isMixed) return undefined;
  const isWhole = row.fields.every((field) => given[field] !== undefined);
  if (isWhole) return { firstRow: from, lastRow: from };
  const end = keyRange(row, bounds.to === undefined ? {} : { from: bounds.to }, given).from;
  // The end of a signature is inclusive, and the first key after those with a prefix may be the key of a row.
  const { before } = rangeOfPrefix(end);
  const lastRow = before === undefined || parseKey(row, before) ? lastOfPrefix(end) : before;
  return { firstRow: from, lastRow };
}
