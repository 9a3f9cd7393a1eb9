import { toAddress } from '../app/router.ts';

/** What a list shows, as its address has it, so that it can be bookmarked and shared. */
export interface ListQuery {
  readonly by: string;
  readonly given: Readonly<Record<string, string>>;
  readonly from: string;
  readonly to: string;
  /** The instant as of which a partition is read; empty for now. */
  readonly at: string;
  readonly filters: readonly Filter[];
  /** Texts of the address that are no filters. */
  readonly unknownFilters: readonly string[];
  /** Empty: all. */
  readonly columns: readonly string[];
}

export interface Filter {
  readonly field: string;
  readonly operator: Operator;
  readonly value: string;
}

export const OPERATORS = { eq: '=', ne: '≠', gt: '>', ge: '≥', lt: '<', le: '≤', in: 'one of' } as const;
export type Operator = keyof typeof OPERATORS;

const GIVEN = 'key.';

export function parseListQuery(query: URLSearchParams): ListQuery {
  const given = [...query].filter(([name]) => name.startsWith(GIVEN));
  const filters = query.getAll('where').map((text) => [text, parseFilter(text)] as const);
  return {
    by: query.get('by') ?? '',
    given: Object.fromEntries(given.map(([name, value]) => [name.slice(GIVEN.length), value])),
    from: query.get('from') ?? '',
    to: query.get('to') ?? '',
    at: query.get('at') ?? '',
    filters: filters.flatMap(([, filter]) => filter ?? []),
    unknownFilters: filters.flatMap(([text, filter]) => (filter ? [] : [text])),
    columns: query.get('columns')?.split(',').filter(Boolean) ?? [],
  };
}

/** `jobTitle eq Clerk`. */
function parseFilter(text: string): Filter | undefined {
  const [, field, operator, value] = /^(\S+) (\w+) (.*)$/s.exec(text) ?? [];
  const isKnown = operator !== undefined && Object.hasOwn(OPERATORS, operator);
  return field && isKnown ? { field, operator: operator as Operator, value: value ?? '' } : undefined;
}

export function toListAddress(entity: string, { by, given, from, to, at, filters, columns }: ListQuery): string {
  const base = toAddress(['entities', entity, 'rows'], {
    by,
    ...Object.fromEntries(Object.entries(given).map(([field, value]) => [GIVEN + field, value])),
    from,
    to,
    at,
    columns: columns.join(','),
  });
  const where = filters.map(({ field, operator, value }) => ['where', `${field} ${operator} ${value}`] as const);
  if (where.length === 0) return base;
  const text = new URLSearchParams(where.map((pair) => [...pair])).toString();
  return `${base}${base.includes('?') ? '&' : '?'}${text}`;
}

/** `{ age: { ge: '30', lt: '40' } }`, as the client accepts it. A list of values is split at commas. */
export function toWhere(filters: readonly Filter[]): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const where: Record<string, Record<string, unknown>> = {};
  for (const { field, operator, value } of filters) {
    const comparisons = where[field] ?? {};
    comparisons[operator] = operator === 'in' ? value.split(',').map((each) => each.trim()) : value;
    where[field] = comparisons;
  }
  return where;
}
