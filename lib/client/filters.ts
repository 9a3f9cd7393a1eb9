import { findNotJson, sayNotJson } from '../base/json-value.ts';
import type { Values } from '../base/values.ts';
import type { Tools } from './core.ts';
import type { ListQuery, Parameter } from './paths.ts';

/** Filters of lists. Loaded with the first of them. */

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

/** `age=ge:30`. A text may begin with an operator, so equality has one too. Throws `invalid-input`. */
export function filters({ invalidInput }: Tools, where: Values = {}, prefix = ''): Parameter[] {
  const found = findNotJson({ where });
  // Without members of its own, such as a `Map` or a `Date`, a filter would match every entity.
  if (found) throw invalidInput(`"${found.path.join('.')}" ${sayNotJson(found)}.`);
  return Object.entries(where).flatMap(([field, condition]) => {
    if (condition === undefined) return [];
    if (prefix === '' && TAKEN.includes(field))
      throw invalidInput(`"${field}" cannot be compared, because a parameter of the API has this name.`);
    const comparisons = isScalar(condition) ? { eq: condition } : (condition ?? {});
    const isComparison = (value: unknown) =>
      isScalar(value) || (Array.isArray(value) && value.length > 0 && value.every(isScalar));
    const given = Object.entries(comparisons);
    if (
      Array.isArray(comparisons) ||
      given.length === 0 ||
      !given.every(([, value]) => value === undefined || isComparison(value))
    )
      throw invalidInput(`"where.${field}" must be a value, or an operator with a value or a list of values.`);
    return given
      .filter(([, value]) => value !== undefined)
      .map(([operator, value]) => [`${prefix}${field}`, `${operator}:${toText(value)}`] as const);
  });
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function toText(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  return value.map((each) => String(each).replace(/[\\,]/g, '\\$&')).join(',');
}
