import { OPERATORS } from '../define/codec/filter.ts';
import { toJsonSchema } from './json-schema.ts';
import { type Parameter, refTo, type Schema } from './openapi-components.ts';
import type { FilterParameter } from './route.ts';

/** The query parameters that compare fields. An array without `explode: false` is a parameter that may be repeated. */

const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;

/** The components for comparisons, by the type of the field. No pattern has the bounds of the values behind an operator. */
export const COMPARISONS: Readonly<Record<string, Schema>> = {
  Comparison: {
    description: 'Such as ge:VALUE or in:VALUE,VALUE',
    type: 'string',
    pattern: `^(?:${OPERATORS.join('|')}):`,
  },
  NumberComparison: { type: 'string', pattern: compare(OPERATORS, NUMBER) },
  BooleanComparison: { type: 'string', pattern: compare(['eq', 'ne', 'in'], '(?:true|false)') },
};

/** Nothing for a field that cannot be compared. */
export function describeFilter([field, { refused, ...filter }]: readonly [string, FilterParameter]): Parameter[] {
  if (!('schema' in filter)) return [];
  const { title: _, description: __, examples: ___, ...value }: Schema = toJsonSchema(filter.schema, 'input');
  // A text without a rule may be a comparison, too.
  const isAnyText = value.type === 'string' && Object.keys(value).length === 1;
  const items = isAnyText ? value : { anyOf: [value, refTo('schemas', nameComparison(value))] };
  return [{ name: field, in: 'query', schema: { type: 'array', items } }];
}

function nameComparison({ type }: Schema): string {
  if (type === 'number' || type === 'integer') return 'NumberComparison';
  return type === 'boolean' ? 'BooleanComparison' : 'Comparison';
}

function compare(operators: readonly string[], value: string): string {
  const others = operators.filter((operator) => operator !== 'in');
  return `^(?:(?:${others.join('|')}):${value}|in:${value}(?:,${value})*)$`;
}
