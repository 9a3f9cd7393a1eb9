import { type Conditions, isNamed } from '../patterns/conditions.ts';
import type { Call } from './route.ts';

/** What the headers of a write want to be so. */
export function conditionsOf({ header }: Call): Conditions {
  return { ifMatch: header('if-match'), ifNoneMatch: header('if-none-match') };
}

/** Whether a reader has this already: only a GET is answered 304 (RFC 9110, 13.1.2). */
export function isNotModified({ header }: Call, etag: string): boolean {
  return isNamed(header('if-none-match') ?? '', etag);
}
