import { createHash } from 'node:crypto';
import { hiddenFields } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { type Conditions, isNamed } from '../define/declaration/conditions.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { RequestContext } from './route.ts';

/** The part of an ETag that names a view. No ETag of storage contains `;`. */
const VIEW = /;view=[\w-]*(?=")/g;

/** Reads the conditions of a write. An ETag of any view stands for the stored state that it was created from. */
export function readConditions({ header }: RequestContext): Conditions {
  const [ifMatch, ifNoneMatch] = [header('if-match'), header('if-none-match')];
  return { ifMatch: ifMatch && toStoredEtag(ifMatch), ifNoneMatch: ifNoneMatch && toStoredEtag(ifNoneMatch) };
}

/** The condition on the stored state, without the names of views. */
export function toStoredEtag(condition: string): string {
  return condition.replace(VIEW, '');
}

/** True if the caller has the current state. Only a GET may return 304 (RFC 9110, 13.1.2). */
export function isNotModified({ header }: RequestContext, etag: string): boolean {
  return isNamed(header('if-none-match') ?? '', etag);
}

/**
 * The ETag of an entity without the `hidden` fields, or of the selected fields alone. It contains the ETag of storage, which a
 * write compares, and differs for each set of fields: a browser may revalidate one caller's copy with another caller's token
 * (RFC 9111, 4.1), and a client may revalidate its copy of a part with a request for all.
 */
export function toViewEtag(etag: string, hidden: readonly string[], select?: readonly string[]): string {
  if (hidden.length === 0 && !select) return etag;
  const fields = [hidden, ...(select ? [[...new Set(select)]] : [])].map((names) => names.toSorted());
  const view = createHash('sha256').update(JSON.stringify(fields)).digest('base64url').slice(0, 12);
  return etag.replace(/"$/, `;view=${view}"`);
}

export function toEntityHeaders(
  entity: Entity,
  caller: Caller,
  { etag, select }: { readonly etag: string; readonly select?: readonly string[] | undefined },
): Record<string, string> & { readonly etag: string } {
  const { maxAge } = entity;
  return {
    etag: toViewEtag(etag, hiddenFields(entity, caller), select),
    ...(maxAge ? { 'cache-control': `private, max-age=${maxAge}` } : {}),
  };
}
