import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Api, Reply } from '../api/api.ts';

/** The routes of operators below `/operations`. */

export interface Items<Item> {
  readonly items: readonly Item[];
}

export async function read<Body>(api: Api, path: string, signal: AbortSignal): Promise<Body> {
  const { text } = await api.send({ method: 'GET', path: `/operations/${path}`, signal });
  return JSON.parse(text);
}

/** The same, or undefined if there is none (404). */
export function readIfAny<Body>(api: Api, path: string, signal: AbortSignal): Promise<Body | undefined> {
  return read<Body>(api, path, signal).catch((error: unknown) => {
    if (error instanceof RowkeyClientError && error.status === 404) return undefined;
    throw error;
  });
}

export async function call(api: Api, method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<void> {
  await api.send({ method, path: `/operations/${path}`, body });
}

export interface Walk<Body> {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** Called after each page. Returns false to stop before the next one. */
  readonly onPage: (page: Body) => boolean;
}

/** Calls a route page by page until the last. Each page continues where the one before ended. */
export async function walk<Body>(api: Api, { path, method = 'POST', body, signal, onPage }: Walk<Body>): Promise<void> {
  let next: string | undefined = `/operations/${path}`;
  while (next !== undefined) {
    const reply: Reply = await api.send({ method, path: next, body, signal });
    if (!onPage(JSON.parse(reply.text))) return;
    next = nextPath(api, reply);
  }
}

/** The path of the next page, below the root of the API. */
function nextPath({ url }: Api, { headers }: Reply): string | undefined {
  const [, link] = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '') ?? [];
  return link && new URL(link, url).href.slice(url.length);
}
