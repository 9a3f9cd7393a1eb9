import { RowkeyError } from '../errors.ts';

/** What a request wants to be so of what it changes: the headers If-Match and If-None-Match as they came (RFC 9110, 13.1). */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/**
 * To be asked of the state that is then written under its ETag, so that it still holds when that is done. `etag` is
 * undefined where there is nothing. Throws `etag-mismatch`.
 */
export function checkConditions({ ifMatch, ifNoneMatch }: Conditions, etag: string | undefined): void {
  const details = etag === undefined ? {} : { etag };
  if (ifMatch !== undefined && !isNamed(ifMatch, etag))
    throw new RowkeyError(
      'etag-mismatch',
      'ETag mismatch: If-Match does not name the current ETag. The entity changed since it was read.',
      details,
    );
  if (ifNoneMatch !== undefined && isNamed(ifNoneMatch, etag))
    throw new RowkeyError(
      'etag-mismatch',
      'ETag mismatch: If-None-Match names the current ETag, or is * and the entity exists.',
      details,
    );
}

/** Whether a header that is a list of ETags, or `*`, names this one, be it weak, as those of Table storage are, or not. */
export function isNamed(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false;
  const given: readonly string[] = header.match(/"[^"]*"/g) ?? [];
  return header.trim() === '*' || given.includes(etag.replace(/^W\//, ''));
}
