import type { ListInput } from '../api/reads.ts';
import type { Values } from '../base/values.ts';
import type { EntityDescription as Described, IndexDescription } from '../define/declaration/model-description.ts';
import { invalidInput } from './errors.ts';

/** Paths and queries of requests. */

/** An entity of `GET /api/model` with its name, which begins its paths. */
export interface EntityDescription extends Described {
  readonly name: string;
}

/** An index or totals. */
export type RangesDescription = Pick<IndexDescription, 'fields' | 'ranges'>;

/** A path below the API root. Throws `invalid-input` for a value that no path can have. */
export function toPath(parts: readonly unknown[]): string {
  return parts
    .map((part) => {
      const text = String(part);
      // A browser would resolve dots, and the request would reach another entity.
      if (text === '' || text === '.' || text === '..') throw invalidInput(`A key field cannot be "${text}".`);
      return `/${encodeURIComponent(text)}`;
    })
    .join('');
}

/** The values of fields in their order. Throws `invalid-input` if one is missing. */
export function valuesOf(fields: readonly string[], given: Values): unknown[] {
  return fields.map((field) => {
    const value = given[field];
    if (value === undefined || value === null) throw invalidInput(`The key field "${field}" is missing.`);
    return value;
  });
}

/** The path of an entity, or of a part of it. */
export function pathOf({ name, key }: EntityDescription, values: Values, ...parts: readonly unknown[]): string {
  return toPath([name, ...valuesOf(key.fields, values), ...parts]);
}

export function hasKey({ key }: EntityDescription, values: Values): boolean {
  return key.fields.every((field) => values[field] !== undefined);
}

/** The path of a list of a partition. Throws `invalid-input` if each partition has one entity. */
export function partitionPath({ name, key }: EntityDescription, partition: Values): string {
  const { fields } = key.partition;
  if (fields.length === key.fields.length) throw invalidInput(`A partition of ${name} has one entity: use get.`);
  return toPath([name, ...valuesOf(fields, partition)]);
}

/** The fields of the path of a range that begins with these values. Throws `invalid-input`, which lists the accepted ones. */
export function rangeFields({ fields, ranges }: RangesDescription, given: Values, what: string): readonly string[] {
  const names = Object.keys(given).filter((field) => given[field] !== undefined);
  const start = ranges.find(
    (one) => one.fields.length === names.length && one.fields.every((field) => names.includes(field)),
  );
  if (start && start.fields.length <= fields.length) return start.fields;
  throw invalidInput(`A range over ${what} begins with other fields: ${listStarts(ranges)}.`);
}

/** Throws `invalid-input`, which names the missing fields and the ranges that do without them, unless each field has a value. */
export function checkFields({ fields, ranges }: RangesDescription, given: Values, call: string): void {
  const missing = fields.filter((field) => given[field] === undefined || given[field] === null);
  if (missing.length === 0) return;
  const shorter = ranges.filter((one) => one.fields.length < fields.length);
  const range = shorter.length > 0 ? ` ${call}.range accepts fewer fields: ${listStarts(shorter)}.` : '';
  throw invalidInput(`${call} needs ${fields.join(', ')}. Missing: ${missing.join(', ')}.${range}`);
}

function listStarts(ranges: RangesDescription['ranges']): string {
  return ranges.map(({ fields }) => fields.join(', ') || 'none').join('; ');
}

/** The query of a list. `URLSearchParams` is not complete in React Native. */

export interface ListQuery extends ListInput<string, Values> {
  readonly from?: unknown;
  readonly to?: unknown;
  readonly prefix?: unknown;
  readonly order?: unknown;
  readonly top?: number | undefined;
  readonly continuation?: string | undefined;
}

type Parameter = readonly [name: string, value: unknown];

/** Parameters of the API: a filter of a field with such a name would be read as one of them. */
export const TAKEN: readonly string[] = Object.keys({
  top: true,
  from: true,
  to: true,
  select: true,
  continuation: true,
  prefix: true,
  order: true,
  explain: true,
} satisfies Record<Exclude<keyof ListQuery, 'where'> | 'explain', true>);

/** `?a=b&c=d`, without the parameters that have no value. */
export function toQuery(parameters: readonly Parameter[]): string {
  const given = parameters.filter(([, value]) => value !== undefined);
  const pairs = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}

export function toListQuery({ where, select, ...options }: ListQuery): string {
  return toQuery([...Object.entries(options), ['select', select?.join(',')], ...filters(where)]);
}

/** `age=ge:30`. A text may begin with an operator, so equality has one too. Throws `invalid-input`. */
export function filters(where: Values = {}, prefix = ''): Parameter[] {
  return Object.entries(where).flatMap(([field, condition]) => {
    if (condition === undefined) return [];
    if (prefix === '' && TAKEN.includes(field))
      throw invalidInput(`"${field}" cannot be compared, because a parameter of the API has this name.`);
    const comparisons = typeof condition === 'object' && condition !== null ? condition : { eq: condition };
    return Object.entries(comparisons)
      .filter(([, value]) => value !== undefined)
      .map(([operator, value]) => [`${prefix}${field}`, `${operator}:${toText(value)}`] as const);
  });
}

function toText(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  return value.map((each) => String(each).replace(/[\\,]/g, '\\$&')).join(',');
}
