import { nextOf } from '../../../lib/client/transport.ts';
import type { Api } from '../api/api.ts';
import type { Entity, Values } from '../api/model.ts';
import { type ListQuery, toWhere } from './list-query.ts';
import { findRead, type Way } from './ways.ts';

export interface RowsPage {
  readonly items: readonly Values[];
  readonly next: string | undefined;
}

export interface PageRequest {
  readonly after: string | undefined;
  readonly top: number;
  readonly signal: AbortSignal;
}

/** Reads a page of what the query asks for. Undefined if a required value is missing. */
export function createPageReader(api: Api, entity: Entity, way: Way, query: ListQuery) {
  const { given, from, to, at, filters, columns } = query;
  const read = findRead(way, given);
  if (!read || way.kind === 'key') return undefined;
  const values = Object.fromEntries(read.fields.map((field) => [field, given[field]]));
  const bounds = read.range ? { ...(from ? { from } : {}), ...(to ? { to } : {}) } : {};
  // The key leads to the page of a row.
  const select = columns.length > 0 ? [...new Set([...entity.key.fields, ...columns])] : undefined;
  const where = toWhere(filters);
  const options = { ...bounds, where, select };

  return async ({ after, top, signal }: PageRequest): Promise<RowsPage> => {
    const page = { after, top, signal };
    if (way.kind === 'scan') return scan(api, entity, { ...page, select, where });
    const client = api.entity(entity.name);
    if (way.kind === 'mine') return client.mine(options).page(page);
    if (way.kind === 'partition') return client.range(values, { ...options, at: at || undefined }).page(page);
    const index = client.by[way.id];
    if (!index) throw new Error(`No index "${way.id}".`);
    if (read.fields.length < way.fields.length) return index.range(values, options).page(page);
    if (!way.isOne) return index(values, options).page(page);
    const found = await index(values, { select, signal });
    return { items: found ? [found] : [], next: undefined };
  };
}

/** A page of the whole table, by a route that only operators may call. */
async function scan(
  api: Api,
  { name }: Entity,
  request: PageRequest & {
    readonly select: readonly string[] | undefined;
    readonly where: ReturnType<typeof toWhere>;
  },
): Promise<RowsPage> {
  const { after, top, select, where, signal } = request;
  const search = new URLSearchParams({ top: String(top) });
  if (after !== undefined) search.set('continuation', after);
  if (select) search.set('select', select.join(','));
  for (const [field, comparisons] of Object.entries(where))
    for (const [operator, value] of Object.entries(comparisons)) search.append(field, `${operator}:${value}`);
  const { text, headers } = await api.send({ method: 'GET', path: `/operations/scan/${name}?${search}`, signal });
  return { items: JSON.parse(text).items, next: nextOf(headers) };
}
