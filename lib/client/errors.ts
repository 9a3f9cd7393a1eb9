import type { ErrorCode } from '../base/errors.ts';
import type { Stored } from '../base/values.ts';

/** Problem details of the API (RFC 9457). docs/reference/problems.md explains each code. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly field?: string;
  readonly accepted?: string;
  readonly etag?: string;
  readonly errors?: readonly { readonly field: string; readonly message: string }[];
}

/**
 * A code of the API, or one of the client: `offline` (the device has no network), `network` (no response came; a write may
 * have been made), `operation-failed` (an archive or a move), `unexpected-response` (not from the API).
 */
export type ClientErrorCode =
  | ErrorCode
  | 'internal'
  | 'offline'
  | 'network'
  | 'operation-failed'
  | 'unexpected-response';

interface ClientErrorDetails {
  readonly status?: number;
  readonly problem?: Problem | undefined;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** Every failed call throws it, except for an aborted one, which throws the reason of its signal. */
export class RowkeyClientError<Values = unknown> extends Error {
  override readonly name = 'RowkeyClientError';
  readonly code: ClientErrorCode;
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  readonly problem: Problem | undefined;
  /** The name of the entity whose call failed, if a call of an entity did. */
  entity: string | undefined;
  /** The entity as it is now, for a conflict; undefined if it does not exist or the caller may not read it. */
  current: Stored<Values> | undefined;
  /** True if an earlier attempt of the call got no response, so that it may have been executed. */
  isRepeated = false;
  /** Seconds, from the Retry-After header. */
  readonly retryAfter: number | undefined;

  constructor(
    code: ClientErrorCode,
    message: string,
    { status = 0, problem, retryAfter, cause }: ClientErrorDetails = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}

export function invalidInput(message: string): RowkeyClientError {
  return new RowkeyClientError('invalid-input', message);
}

/** The error of one part of a response that has several. */
export function toProblemError(problem: Problem): RowkeyClientError {
  const { code, detail, status } = problem;
  return new RowkeyClientError(code as ClientErrorCode, detail, { status, problem });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof RowkeyClientError && error.code === 'not-found';
}

export function undefinedIfNotFound<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    return undefined;
  });
}

/** Loads a module of the client. Throws `network`. */
export function load<Module>(module: Promise<Module>): Promise<Module> {
  return module.catch((cause: unknown) => {
    throw new RowkeyClientError('network', 'A module of the client could not be loaded.', { cause });
  });
}
