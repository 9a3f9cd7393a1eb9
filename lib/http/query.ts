import { z } from 'zod';
import { requireWholeReader } from '../access/rule.ts';
import { isVisitor } from '../access/token.ts';
import type { ListInput } from '../api/reads.ts';
import { RowkeyError } from '../base/errors.ts';
import { toUtc } from '../base/time.ts';
import { type AskedComparison, reasonNotToFilter } from '../define/codec/query.ts';
import { textToValue } from '../define/codec/validation.ts';
import { OPERATORS } from '../define/declaration/comparison.ts';
import { type Entity, withArchives } from '../define/declaration/entity.ts';
import { fromContinuation, type Position, toContinuation } from '../engine/read/continuation.ts';
import type { PageOptions } from '../engine/read/retrieve.ts';
import type { FilterParameter, RequestContext, Route } from './route.ts';

export function queryError(name: string, why: string, accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `Query parameter "${name}" ${why}.`, { field: name, accepted });
}

/**
 * Rejects parameters that the route does not have: a misspelt one would have no effect. Every route with a token accepts `explain`, and
 * no route reads it. Throws `invalid-input`, and `forbidden` for an explanation that the caller may not see.
 */
export function checkQuery({
  app,
  caller,
  route,
  query: given,
}: Pick<RequestContext, 'app' | 'caller' | 'route' | 'query'>): void {
  const { roles, query = {}, filters = {} } = route;
  const isExplanation = readBoolean(given, 'explain');
  // An explanation names tables and blobs, which nobody may read without a token.
  if (isExplanation && !roles) throw queryError('explain', 'is not accepted by a public route', 'no explain');
  if (isExplanation && isVisitor(caller))
    throw new RowkeyError('forbidden', 'Only a caller with a token gets an explanation.');
  given.delete('explain');
  const comparable = Object.keys(filters).filter((field) => filters[field]?.refused === undefined);
  const names = [...Object.keys(query), ...comparable];
  for (const name of given.keys()) {
    const filter = Object.hasOwn(filters, name) ? filters[name] : undefined;
    if (filter?.refused !== undefined)
      throw queryError(name, `is no filter: the field ${filter.refused}`, 'other fields');
    if (filter || (names.includes(name) && given.getAll(name).length === 1)) continue;
    const why = names.includes(name) ? 'is given more than once' : 'is unknown';
    throw queryError(name.slice(0, 100), why, names.length > 0 ? names.join(', ') : 'no query parameters');
  }
  // The steps of a write, of a check and of an app's own operation name rows, whose keys are fields of all entities in the table.
  if (isExplanation && (route.kind !== 'read' || route.explains)) {
    const tables = [route.entity, ...(route.explains ?? [])].map((entity) => entity?.table);
    for (const entity of withArchives(app.entities))
      if (tables.includes(entity.table)) requireWholeReader(entity, caller);
  }
}

/** A Boolean parameter, false by default. Throws `invalid-input`. */
export function readBoolean(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw queryError(name, 'must be true or false', 'true, false');
}

/** The items of a comma-separated parameter; undefined without it. */
export function readList(query: URLSearchParams, name: string): string[] | undefined {
  return query
    .get(name)
    ?.split(',')
    .map((item) => item.trim());
}

/** The description of `select` for an entity, and for lists. */
export const SELECT_ONE = 'Fields to return, separated by commas; all without it';
const SELECT = 'Fields to return, separated by commas; large fields are returned only if selected';

/** The names of the fields to return; undefined without `select`. */
export function readSelect(query: URLSearchParams): readonly string[] | undefined {
  return query.get('select') ? readList(query, 'select') : undefined;
}

const Instant = z.iso.datetime({ offset: true });

/** The instant of a parameter, in UTC; undefined without it. Throws `invalid-input`. */
export function readAt(query: URLSearchParams, name = 'at'): string | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!Instant.safeParse(text).success)
    throw queryError(name, 'is no instant', 'an instant such as 2026-11-29T12:00:00Z');
  return toUtc(text);
}

const DEFAULT_TOP = 100;
/** The host returns 414 for a request line of more than 8,192 bytes: the link, its method and its protocol, and a path before it. */
const MAX_LINK_LENGTH = 8_000;
export const MAX_TOP = 1_000;

export const PAGE_QUERY = {
  top: z.int().min(1).max(MAX_TOP).describe(`Page size, 1 to ${MAX_TOP}; the default is ${DEFAULT_TOP}`),
  continuation: 'Where the page starts; taken from the Link header of the previous page',
};

/** Reads the page size and position. A continuation is valid only for the same `bound`: the rest of the query. */
export async function readPageQuery(context: RequestContext, bound: string): Promise<PageOptions> {
  const text = context.query.get('top') ?? String(DEFAULT_TOP);
  const top = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (top < 1 || top > MAX_TOP) throw queryError('top', 'must be a whole number in range', `1 to ${MAX_TOP}`);
  return { top, after: await readContinuation(context, bound) };
}

/** Reads the position alone. */
export async function readContinuation(context: RequestContext, bound: string): Promise<Position | undefined> {
  const { engine, query } = context;
  const token = query.get('continuation');
  return token === null ? undefined : fromContinuation(engine.storage, toCaller(context, bound), token);
}

/** A continuation is of the caller who got it: another one may reach other rows. */
export function toCaller({ caller }: Pick<RequestContext, 'caller'>, bound: string): string {
  return JSON.stringify([caller.subject, bound]);
}

/** The Link header that names the next page (RFC 8288), if there is one. */
export async function toNextLink(
  context: RequestContext,
  next: Position | undefined,
  { path, bound }: { readonly path: string; readonly bound: string },
): Promise<Record<string, string>> {
  if (!next) return {};
  const { engine, query } = context;
  const following = new URLSearchParams(query);
  following.set('continuation', await toContinuation(engine.storage, toCaller(context, bound), next));
  const link = `${path}?${following}`;
  if (link.length > MAX_LINK_LENGTH)
    throw queryError(
      'top',
      `leaves more rows, and the link to them would have ${link.length} characters`,
      `a request whose next link has at most ${MAX_LINK_LENGTH}: with a shorter query, or POST /api/query with the continuation in its body`,
    );
  return { link: `<${link}>; rel="next"` };
}

/**
 * Filters in a query: `?jobTitle=Clerk&age=ge:30&age=lt:40&grade=in:A,B`. A parameter without an operator is equality, and
 * `eq:ge:x` is equality with `ge:x`. In a list, a backslash makes the next character a part of a value: `in:Lee\, Ann,Cy`.
 */
const WITH_OPERATOR = new RegExp(`^(${OPERATORS.join('|')}):(.*)$`, 's');

interface FilterOptions {
  /** Begins the names of the parameters, such as `reviews.`. */
  readonly prefix?: string;
  /** Fields that cannot be compared because the path gives them. */
  readonly without?: readonly string[];
  /** The fields of the copies of an index; all without it. */
  readonly available?: readonly string[] | undefined;
  /** The route's own parameters: a field with the name of one cannot be compared. */
  readonly query?: Route['query'];
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

/** What a list accepts besides its page: in a query, to which the filters are added, and in the body of POST /query. */
export const LIST_QUERY = { select: SELECT };
/** More than an entity and its children have; a bound for a body that repeats names. */
export const MAX_NAMES = 1_000;
export const LIST_BODY = {
  where: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('A filter: for each field a value, or comparisons such as { "ge": 30, "lt": 40 }'),
  select: z.array(z.string()).max(MAX_NAMES).optional().describe('The fields to return; without it all but large ones'),
};

/** Reads what LIST_QUERY describes, and the filters. Throws `invalid-input`. */
export function readListQuery(
  context: RequestContext,
  entity: Entity,
  filters: Readonly<Record<string, FilterParameter>>,
): ListInput {
  return { select: readSelect(context.query), where: readFilter(context, entity, filters) };
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
