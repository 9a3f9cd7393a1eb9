import { createHash } from 'node:crypto';
import type { RequestContext, RouteResult } from './route.ts';
import { isNotModified } from './view-etag.ts';

/** A deployment changes what follows from the model, and a client reads it once per start. */
const MAX_AGE_S = 300;

/** Creates the handler of a public document that follows from the model alone: built at its first request, and kept with its ETag. */
export function serveBuiltOnce(build: (root: string) => unknown): (context: RequestContext) => Promise<RouteResult> {
  const kept = new Map<string, { readonly bytes: Uint8Array; readonly etag: string }>();
  return async (context) => {
    const { root } = context;
    const known = kept.get(root) ?? toDocument(await build(root));
    kept.set(root, known);
    const { bytes, etag } = known;
    const headers = { etag, 'cache-control': `public, max-age=${MAX_AGE_S}`, 'content-type': 'application/json' };
    return isNotModified(context, etag) ? { status: 304, headers } : { status: 200, headers, bytes };
  };
}

function toDocument(value: unknown) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` };
}
