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
      // A browser would resolve dots, and the request would reach another entity. Servers reject a NUL without saying why.
      if (typeof part === 'object' || /^\.{0,2}$|\0/.test(text))
        throw invalidInput(`A path cannot have the value ${JSON.stringify(part)}.`);
      return `/${encode(text)}`;
    })
    .join('');
}

/** Throws `invalid-input` for half of a surrogate pair, which UTF-8 does not have. */
function encode(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw invalidInput(`${JSON.stringify(text)} is not well-formed Unicode.`);
  }
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

export type Parameter = readonly [name: string, value: unknown];

/** `?a=b&c=d`, without the parameters that have no value. */
export function toQuery(parameters: readonly Parameter[]): string {
  const given = parameters.filter(([, value]) => value !== undefined);
  const pairs = given.map(([name, value]) => `${encode(name)}=${encode(String(value))}`);
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}

export function toListQuery(
  { where: _, select, ...options }: ListQuery,
  conditions: readonly Parameter[] = [],
): string {
  return toQuery([...Object.entries(options), ['select', select?.join(',')], ...conditions]);
}
