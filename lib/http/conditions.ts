import { createHash } from 'node:crypto';
import { type Conditions, isNamed } from '../define/conditions.ts';
import type { RequestContext } from './route.ts';

/** The part of an ETag that names a view; `;` is in no ETag of storage. */
const VIEW = /;view=[\w-]*(?=")/g;

/** The conditions in the headers of a write. An ETag of any view stands for the state of the entity that was shown. */
export function conditionsOf({ header }: RequestContext): Conditions {
  return { ifMatch: header('if-match')?.replace(VIEW, ''), ifNoneMatch: header('if-none-match')?.replace(VIEW, '') };
}

/** Whether a reader has this already: only a GET is answered 304 (RFC 9110, 13.1.2). */
export function isNotModified({ header }: RequestContext, etag: string): boolean {
  return isNamed(header('if-none-match') ?? '', etag);
}

/**
 * The ETag of an entity as shown without the `hidden` fields. It contains the ETag of storage, which a write compares, and
 * differs for each set of hidden fields: a browser revalidates one caller's copy with another caller's token (RFC 9111, 4.1).
 */
export function etagOfView(etag: string, hidden: readonly string[]): string {
  if (hidden.length === 0) return etag;
  const view = createHash('sha256').update(JSON.stringify(hidden.toSorted())).digest('base64url').slice(0, 12);
  return etag.replace(/"$/, `;view=${view}"`);
}
