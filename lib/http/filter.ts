import { type AskedComparison, OPERATORS, reasonNotToFilter } from '../define/codec/filter.ts';
import { textToValue } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { FilterParameter, RequestContext } from './route.ts';

/**
 * Filters in a query: `?jobTitle=Clerk&age=ge:30&age=lt:40&grade=in:A,B`. A parameter without an operator is equality, and
 * `eq:ge:x` is equality with `ge:x`. In a list, a backslash makes the next character a part of a value: `in:Lee\, Ann,Cy`.
 */
const WITH_OPERATOR = new RegExp(`^(${OPERATORS.join('|')}):(.*)$`, 's');

export interface FilterOptions {
  /** Begins the names of the parameters, such as `reviews.`. */
  readonly prefix?: string;
  /** Fields that cannot be compared because the path gives them. */
  readonly without?: readonly string[];
  /** The fields of the copies of an index; all without it. */
  readonly available?: readonly string[] | undefined;
  /** The route's own parameters: a field with the name of one cannot be compared. */
  readonly query?: Readonly<Record<string, string>>;
}

/** The parameters of a route that compare fields. */
export function filterParameters(
  entity: Entity,
  { prefix = '', without = [], available, query = {} }: FilterOptions = {},
): Record<string, FilterParameter> {
  const taken = [...without, ...Object.keys(query), 'explain'];
  const fields = Object.entries(entity.schema.shape).filter(([field]) => prefix !== '' || !taken.includes(field));
  return Object.fromEntries(
    fields.map(([field, schema]) => {
      const refused = reasonNotToFilter(entity, field, available);
      return [`${prefix}${field}`, refused ? { refused } : { schema }];
    }),
  );
}

/** Reads the comparisons of a query. Throws `invalid-input`. */
export function readFilter(
  { query }: Pick<RequestContext, 'query'>,
  entity: Entity,
  filters: Readonly<Record<string, FilterParameter>>,
  prefix = '',
): AskedComparison[] {
  const fields = Object.keys(entity.columns).filter((field) => Object.hasOwn(filters, `${prefix}${field}`));
  return fields.flatMap((field) =>
    query.getAll(`${prefix}${field}`).map((text) => {
      const [, name, rest = text] = WITH_OPERATOR.exec(text) ?? [];
      const operator = OPERATORS.find((one) => one === name) ?? 'eq';
      const texts = operator === 'in' ? splitList(rest) : [rest];
      return { field, operator, values: texts.map((each) => textToValue(entity, field, each)) };
    }),
  );
}

/** The texts between commas; a backslash makes the next character a part of a text. */
function splitList(list: string): string[] {
  const items = [''];
  for (const [part] of list.matchAll(/\\?./gs)) {
    if (part === ',') items.push('');
    else items.push(`${items.pop()}${part.length > 1 ? part.slice(1) : part}`);
  }
  return items;
}
