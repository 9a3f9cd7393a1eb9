import { fromContinuation, type Position, toContinuation } from '../engine/read/continuation.ts';
import type { PageOptions } from '../engine/read/retrieve.ts';
import { RowkeyError } from '../errors.ts';
import type { RequestContext } from './route.ts';

const DEFAULT_TOP = 100;
const MAX_TOP = 1_000;

export const PAGE_QUERY = {
  top: `How many, at most ${MAX_TOP}; ${DEFAULT_TOP} unless told`,
  continuation: 'From the link to the next page',
};

/** How many to read, and from where; the token is bound to `bound`, which is everything else that was asked. */
export async function pageOf({ app, query }: RequestContext, bound: string): Promise<PageOptions> {
  const text = query.get('top') ?? String(DEFAULT_TOP);
  const top = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (top < 1 || top > MAX_TOP)
    throw new RowkeyError('invalid-input', 'The query parameter top is not a whole number in the accepted range.', {
      field: 'top',
      accepted: `1 to ${MAX_TOP}`,
    });
  const token = query.get('continuation');
  return { top, after: token === null ? undefined : await fromContinuation(app.engine.storage, bound, token) };
}

/** The header that names the next page (RFC 8288), where there is one. */
export async function nextLink(
  { app, query }: RequestContext,
  next: Position | undefined,
  { path, bound }: { readonly path: string; readonly bound: string },
): Promise<Record<string, string>> {
  if (!next) return {};
  const following = new URLSearchParams(query);
  following.set('continuation', await toContinuation(app.engine.storage, bound, next));
  return { link: `<${path}?${following}>; rel="next"` };
}
