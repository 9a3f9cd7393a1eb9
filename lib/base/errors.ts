/** A failure with a stable code that a caller can act on; `lib/http/problem-kinds.ts` maps codes to statuses. */
export class RowkeyError extends Error implements ErrorFields {
  override readonly name = 'RowkeyError';
  readonly code: ErrorCode;
  // `declare`: a field that is not given is absent, so that a logged error does not list it.
  declare readonly field?: string;
  declare readonly accepted?: string;
  declare readonly detail?: string;
  declare readonly etag?: string;
  declare readonly errors?: { readonly field: string; readonly message: string }[];
  declare readonly retryAfter?: number;

  constructor(code: ErrorCode, message: string, { cause, ...fields }: ErrorFields & { readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    Object.assign(this, fields);
  }
}

/** What an error says beside its code and message. Safe to show to a caller. */
interface ErrorFields {
  /** The first invalid field. */
  readonly field?: string;
  readonly accepted?: string;
  /** Shown to the caller instead of `message`. It may contain a key, which may be personal data, so it is never logged. */
  readonly detail?: string;
  /** The current ETag, with `etag-mismatch`. */
  readonly etag?: string;
  readonly errors?: { readonly field: string; readonly message: string }[];
  /** Seconds to wait before a retry. */
  readonly retryAfter?: number;
}

/** `lib/http/problem-kinds.ts` says what each code means and what to do. */
const ERROR_CODES = [
  'invalid-input',
  'unauthenticated',
  'forbidden',
  'not-found',
  'duplicate-key',
  'duplicate-value',
  'referenced',
  'partition-full',
  'busy',
  'etag-mismatch',
  'too-large',
  'unsupported-media-type',
  'range-not-satisfiable',
  'length-required',
  'method-not-allowed',
  'too-many-requests',
  'storage-unavailable',
  'identity-unavailable',
  'wrong-setting',
  'wrong-output',
  'wrong-operation',
  'not-provisioned',
  'needs-repair',
  'not-built',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** True for an error with a code that callers know. Code that the compiler has not checked may throw one with another. */
export function isKnownError(error: unknown): error is RowkeyError {
  return error instanceof RowkeyError && ERROR_CODES.includes(error.code);
}

/** An error about one entity. `detail` names the key or the values of the request; `message`, which is logged, omits them. */
export function entityError(
  code: ErrorCode,
  { name, keyFields }: { readonly name: string; readonly keyFields: readonly string[] },
  given: Readonly<Record<string, unknown>>,
  what: string,
  fields: ErrorFields = {},
): RowkeyError {
  const subject = keyFields.every((field) => given[field] !== undefined)
    ? JSON.stringify(keyFields.map((field) => given[field]).join('/'))
    : `with ${Object.entries(given)
        .map(([field, value]) => `${field} ${JSON.stringify(value)}`)
        .join(', ')}`;
  return new RowkeyError(code, `${name} "…" ${what}`, { ...fields, detail: `${name} ${subject} ${what}` });
}

/** Other writers change the same rows now; a retry helps. */
export function busy(why: string): RowkeyError {
  return new RowkeyError('busy', `${why} Try again.`, { retryAfter: 1 });
}

/** Storage or the key vault is unreachable. It is unknown whether a write that fails this way was done. */
export function unavailable(why: string, cause: unknown): RowkeyError {
  return new RowkeyError('storage-unavailable', why, { retryAfter: 5, cause });
}

/** True for an error with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is RowkeyError {
  return error instanceof RowkeyError && codes.includes(error.code);
}

/** True if the failed call may have succeeded, or may succeed later. */
export function isOutcomeUnknown(error: unknown): boolean {
  return hasCode(error, 'storage-unavailable');
}

/** A message of a queue that no retry can help: it is recorded immediately. Its text is safe to show. */
export class NeverSucceeds extends Error {
  override readonly name = 'NeverSucceeds';
}

/** A declaration that is not accepted. The message names the entity, what is wrong and what is accepted. */
export class DeclarationError extends Error {
  override readonly name: string = 'DeclarationError';
}
