import { createHash } from 'node:crypto';
import { loadOnce } from '../load-once.ts';
import type { RequestContext, RouteResult } from './route.ts';
import { isNotModified } from './view-etag.ts';

/** A deployment changes what follows from the model, and a client reads it once per start. */
const MAX_AGE_S = 300;

/** Creates the handler of a public document that follows from the model alone: built at its first request, and kept with its ETag. */
export function serveBuiltOnce(build: (root: string) => unknown): (context: RequestContext) => Promise<RouteResult> {
  const documents = new Map<string, () => Promise<ReturnType<typeof toDocument>>>();
  const documentOf = (root: string) => {
    const read = documents.get(root) ?? loadOnce(async () => toDocument(await build(root)));
    documents.set(root, read);
    return read();
  };
  return async (context) => {
    const { bytes, etag } = await documentOf(context.root);
    const headers = { etag, 'cache-control': `public, max-age=${MAX_AGE_S}`, 'content-type': 'application/json' };
    return isNotModified(context, etag) ? { status: 304, headers } : { status: 200, headers, bytes };
  };
}

function toDocument(value: unknown) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` };
}
