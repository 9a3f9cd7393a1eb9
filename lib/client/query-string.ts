import type { Values } from '../base/values.ts';
import { invalidInput } from './errors.ts';

/** The query of a list. `URLSearchParams` is not complete in React Native. */

export interface ListQuery {
  readonly from?: unknown;
  readonly to?: unknown;
  readonly prefix?: unknown;
  readonly order?: unknown;
  readonly select?: readonly string[] | undefined;
  readonly where?: Values | undefined;
  readonly top?: number | undefined;
  readonly continuation?: string | undefined;
}

type Parameter = readonly [name: string, value: unknown];

/** Parameters of the API: a filter of a field with such a name would be read as one of them. */
const TAKEN = ['top', 'from', 'to', 'select', 'continuation', 'prefix', 'order', 'explain'];

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
