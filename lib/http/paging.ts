import { fromContinuation, type Position, toContinuation } from '../engine/read/continuation.ts';
import type { PageOptions } from '../engine/read/retrieve.ts';
import { queryError } from './query.ts';
import type { RequestContext } from './route.ts';

const DEFAULT_TOP = 100;
/** The host returns 414 for a request line of more than 8,192 bytes: the link, its method and its protocol, and a path before it. */
const MAX_LINK_LENGTH = 8_000;
export const MAX_TOP = 1_000;

export const PAGE_QUERY = {
  top: `Page size, 1 to ${MAX_TOP}; the default is ${DEFAULT_TOP}`,
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
export async function readContinuation({ app, query }: RequestContext, bound: string): Promise<Position | undefined> {
  const token = query.get('continuation');
  return token === null ? undefined : fromContinuation(app.engine.storage, bound, token);
}

/** The Link header that names the next page (RFC 8288), if there is one. */
export async function toNextLink(
  { app, query }: RequestContext,
  next: Position | undefined,
  { path, bound }: { readonly path: string; readonly bound: string },
): Promise<Record<string, string>> {
  if (!next) return {};
  const following = new URLSearchParams(query);
  following.set('continuation', await toContinuation(app.engine.storage, bound, next));
  const link = `${path}?${following}`;
  if (link.length > MAX_LINK_LENGTH)
    throw queryError(
      'top',
      `leaves more rows, and the link to them would have ${link.length} characters`,
      `a request whose next link has at most ${MAX_LINK_LENGTH}: with a shorter query, or POST /api/query with the continuation in its body`,
    );
  return { link: `<${link}>; rel="next"` };
}
