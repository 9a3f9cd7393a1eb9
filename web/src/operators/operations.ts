import { nextOf } from '../../../lib/client/transport.ts';
import type { Api } from '../api/api.ts';

/** The routes of operators below `/operations`. */

export interface Items<Item> {
  readonly items: readonly Item[];
  /** The storage accounts that do not respond, whose items are missing. */
  readonly away?: readonly string[];
}

export async function read<Body>(api: Api, path: string, signal: AbortSignal): Promise<Body> {
  const { text } = await api.send({ method: 'GET', path: `/operations/${path}`, signal });
  return JSON.parse(text);
}

export async function call(api: Api, method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<void> {
  await api.send({ method, path: `/operations/${path}`, body });
}

interface Walk<Body> {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** Called after each page. Returns false to stop before the next one. */
  readonly onPage: (page: Body) => boolean;
}

/** Calls a route page by page until the last. Each page continues where the one before ended. */
export async function walk<Body>(api: Api, { path, method = 'POST', body, signal, onPage }: Walk<Body>): Promise<void> {
  const separator = path.includes('?') ? '&' : '?';
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const position = after === undefined ? '' : `${separator}continuation=${encodeURIComponent(after)}`;
    const { text, headers } = await api.send({ method, path: `/operations/${path}${position}`, body, signal });
    if (!onPage(JSON.parse(text))) return;
    after = nextOf(headers);
  }
}

/** The queue of a part: `index-changes` for `second/index-changes-1`. */
export function queueOf(part: string): string {
  return part.replace(/^.*\/|-\d+$/g, '');
}
