/** A failure with a stable code that a caller can act on; `lib/http/problem.ts` maps codes to statuses. */
export class RowkeyError extends Error {
  readonly code: ErrorCode;
  /** The offending field and what would be accepted, where there is one; safe to show to a caller. */
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RowkeyError';
    this.code = code;
    this.details = details;
  }
}

export interface ErrorDetails {
  readonly field?: string;
  readonly accepted?: string;
  /** What the caller is told in place of `message`. It may hold a key, which may be personal data, so it is never logged. */
  readonly detail?: string;
  /** The ETag that storage holds now, with `etag-mismatch`. */
  readonly etag?: string;
  readonly errors?: { readonly field: string; readonly message: string }[];
  /** Seconds after which trying again makes sense. */
  readonly retryAfter?: number;
}

export type ErrorCode =
  | 'invalid-input'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'duplicate-key'
  | 'duplicate-value'
  | 'busy'
  | 'etag-mismatch'
  | 'too-large'
  /** The body's media type is not accepted. */
  | 'unsupported-media-type'
  /** The request has a body of undeclared length, which the Functions host does not pass on. */
  | 'length-required'
  | 'method-not-allowed'
  | 'too-many-requests'
  | 'storage-unavailable'
  | 'identity-unavailable'
  | 'wrong-setting'
  /** What is stored was lost, or changed from outside, so that an operator has to look at it. */
  | 'needs-repair'
  /** A message or request that no retry can help: it goes to the poison queue at once. */
  | 'never-succeeds';

/** About one entity: `detail` names its key, or the values that it was asked for by, and `message` leaves them out. */
export function entityError(
  code: ErrorCode,
  { name, keyFields }: { readonly name: string; readonly keyFields: readonly string[] },
  given: Readonly<Record<string, unknown>>,
  what: string,
  details: ErrorDetails = {},
): RowkeyError {
  const subject = keyFields.every((field) => given[field] !== undefined)
    ? JSON.stringify(keyFields.map((field) => given[field]).join('/'))
    : `with ${Object.entries(given)
        .map(([field, value]) => `${field} ${JSON.stringify(value)}`)
        .join(', ')}`;
  return new RowkeyError(code, `${name} "…" ${what}`, { ...details, detail: `${name} ${subject} ${what}` });
}

/** Others write the same at this moment: the caller is told to try again. */
export function busy(why: string): RowkeyError {
  return new RowkeyError('busy', `${why} Try again.`, { retryAfter: 1 });
}

/** Storage, or the vault, does not answer. Of a write that fails so it is not known whether it was done. */
export function unavailable(why: string, cause: unknown): RowkeyError {
  return new RowkeyError('storage-unavailable', why, { retryAfter: 5 }, cause);
}
