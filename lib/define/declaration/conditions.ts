import { RowkeyError } from '../../base/errors.ts';

/** The preconditions of a request: its headers If-Match and If-None-Match (RFC 9110, 13.1). */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/**
 * Throws `etag-mismatch` unless the conditions hold. The caller then writes under this ETag, so that they still hold when
 * the write commits. `etag` is undefined if nothing exists.
 */
export function checkConditions({ ifMatch, ifNoneMatch }: Conditions, etag: string | undefined): void {
  if (ifMatch !== undefined && !isNamed(ifMatch, etag)) throw etagMismatch(etag, ifMatch);
  if (ifNoneMatch !== undefined && isNamed(ifNoneMatch, etag))
    throw new RowkeyError(
      'etag-mismatch',
      'ETag mismatch: If-None-Match names the current ETag, or is * and the entity exists.',
      etag === undefined ? {} : { etag },
    );
}

/** The error of an If-Match that does not hold. `etag` is the current one. */
function etagMismatch(etag: string | undefined, ifMatch: string): RowkeyError {
  const current = etag === undefined ? {} : { etag };
  if (!ifMatch.includes('"') && ifMatch.trim() !== '*')
    return new RowkeyError(
      'etag-mismatch',
      'ETag mismatch: If-Match has no ETag. Send one as a response has it, with its quotation marks.',
      current,
    );
  return new RowkeyError(
    'etag-mismatch',
    'ETag mismatch: If-Match does not name the current ETag. The entity changed since it was read.',
    current,
  );
}

/**
 * The ETag of storage that an If-Match names, or `*`. Undefined for a list, and for a text that is no ETag of storage, which
 * storage would reject as malformed.
 */
export function singleEtag(ifMatch: string): string | undefined {
  if (ifMatch.trim() === '*') return '*';
  const [, etag] = /^(?:W\/)?("datetime'[\w%:.-]+'")$/.exec(ifMatch.trim()) ?? [];
  return etag && `W/${etag}`;
}

/**
 * True if the header, a list of ETags or `*`, names this ETag. The comparison is weak, because the ETags of Table storage
 * are.
 */
export function isNamed(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false;
  const given: readonly string[] = header.match(/"[^"]*"/g) ?? [];
  return header.trim() === '*' || given.includes(etag.replace(/^W\//, ''));
}
