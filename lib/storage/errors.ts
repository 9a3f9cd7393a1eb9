import { setTimeout as sleep } from 'node:timers/promises';
import { isRestError, type PipelinePolicy, type PipelineRequest } from '@azure/core-rest-pipeline';
import { hasCode, isOutcomeUnknown, RowkeyError, unavailable } from '../base/errors.ts';
import { commandLine } from '../command-line.ts';

/** Storage rejected an action for a reason that the caller can act on. */
export class StorageConflict extends Error {
  readonly reason: Reason;
  /** The index of the rejected action in its entity group transaction. */
  readonly action: number;
  /** True if an earlier attempt of the SDK may have been executed: the conflict may be one with itself. */
  readonly isRepeated: boolean;

  constructor(reason: Reason, action: number, cause: unknown, isRepeated = isUnanswered(cause)) {
    super(`Storage rejected action ${action}: ${reason}.`, { cause });
    this.name = 'StorageConflict';
    this.reason = reason;
    this.action = action;
    this.isRepeated = isRepeated;
  }
}

/** Requests of which an attempt has an unknown outcome. The SDK repeats the same object. */
const unanswered = new WeakSet<PipelineRequest>();

function isUnanswered(error: unknown): boolean {
  return isRestError(error) && error.request !== undefined && unanswered.has(error.request);
}

/**
 * Remembers the requests of which an attempt got no answer, or one that does not say whether it was executed. Presents a 429 to the SDKs as
 * the 503 that storage documents for throttling: they retry every 503, but a 429 only with a `Retry-After` header (tables) or never (queues
 * and blobs).
 */
export const noteOutcome: PipelinePolicy = {
  name: 'noteOutcome',
  async sendRequest(request, next) {
    try {
      const response = await next(request);
      const { status } = response;
      // Storage has executed nothing if it is busy.
      if (status === 429) return { ...response, status: 503 };
      if (status === 408 || (status >= 500 && status !== 503)) unanswered.add(request);
      return response;
    } catch (error) {
      if (!isUnsent(error)) unanswered.add(request);
      throw error;
    }
  },
};

/** Codes of errors without a connection. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);
/** The message of Node for a failed handshake; its code is that of a connection that was lost at any time. */
const NO_HANDSHAKE = 'Client network socket disconnected before secure TLS connection was established';

/** True if a request failed before it was sent. */
export function isUnsent(error: unknown): boolean {
  // A timeout has the same code before and after the connection.
  if (!isRestError(error)) return false;
  return UNSENT.has(error.code ?? '') || error.message.startsWith('connect ') || error.message === NO_HANDSHAKE;
}

type Reason = 'exists' | 'changed' | 'missing' | 'empty' | 'leased' | 'table-being-deleted';

/** The only place that knows the error codes of storage. */
const REASONS: Readonly<Record<string, Reason>> = {
  EntityAlreadyExists: 'exists',
  UpdateConditionNotSatisfied: 'changed',
  ConditionNotMet: 'changed',
  SourceConditionNotMet: 'changed',
  Md5Mismatch: 'changed',
  ResourceNotFound: 'missing',
  EntityNotFound: 'missing',
  MessageNotFound: 'missing',
  PopReceiptMismatch: 'changed',
  TableBeingDeleted: 'table-being-deleted',
  BlobAlreadyExists: 'exists',
  // An immutable blob would be overwritten.
  BlobImmutableDueToPolicy: 'exists',
  AppendPositionConditionNotMet: 'changed',
  BlobNotFound: 'missing',
  // Whoever uploads a blob chooses its tier. Nothing can read a blob in the archive tier.
  BlobArchived: 'missing',
  // Another writer committed other blocks.
  InvalidBlockList: 'changed',
  InvalidRange: 'empty',
  LeaseIdMissing: 'leased',
};
/** Why storage cannot copy a blob, by the status of the response: the error code is the same for all reasons. Any other one is of the accounts. */
const COPY_REASONS: Readonly<Record<number, Reason>> = { 404: 'missing', 412: 'changed' };
/** What a deployment creates, by the error code for its absence. */
const NOT_FOUND: Readonly<Record<string, string>> = {
  TableNotFound: 'table',
  QueueNotFound: 'queue',
  ContainerNotFound: 'container',
};
const TOO_LARGE = new Set([
  'EntityTooLarge',
  'PropertyValueTooLarge',
  'RequestBodyTooLarge',
  'ContentLengthExceeded',
  'TooManyProperties',
]);
const NO_ANSWER = 'Storage is unavailable.';
/** The SDK for blobs uses a newer API version than any release of the emulator knows. */
const OLDER_API =
  'The storage emulator rejects the API version of the SDK (400 InvalidHeaderValue): start Azurite with --skipApiVersionCheck.';

/** The sentence for operators; `missing` has names such as `table employees`. */
export function describeMissing(missing: readonly string[]): string {
  return `Missing in the storage account: ${missing.join(', ')}. To create what is missing, run ${commandLine('infra')} and deploy.`;
}

/**
 * Translates the failure of a storage call. Rethrows an unknown failure unchanged. `name` is the table, queue or container,
 * because an SDK error does not always have the name.
 */
export async function storageCall<Result>(call: Promise<Result>, name = ''): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    throw translate(error, name);
  }
}

/** True if storage is the cause of a failure: it is away, or rejected a request. */
export function isStorageError(error: unknown): boolean {
  const isAborted = error instanceof Error && error.name === 'AbortError';
  return isAborted || isOutcomeUnknown(error) || isRestError(error) || error instanceof StorageConflict;
}

/** True if a request was rejected because its table does not exist or is being deleted. */
export function isTableGone(error: unknown): boolean {
  return (
    hasCode(error, 'not-provisioned') || (error instanceof StorageConflict && error.reason === 'table-being-deleted')
  );
}

/** Translates errors of streams as `storageCall` does: the pages of a listing, the bytes of a blob. */
export async function* storageCalls<Piece>(pieces: AsyncIterable<Piece>, name = ''): AsyncGenerator<Piece> {
  try {
    yield* pieces;
  } catch (error) {
    throw translate(error, name);
  }
}

/** Translates errors as `storageCall` does. Returns undefined for a conflict with one of these reasons. */
export async function unlessRefused<Result>(
  reasons: readonly Reason[],
  call: Promise<Result>,
  name = '',
): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    const failure = translate(error, name);
    if (failure instanceof StorageConflict && reasons.includes(failure.reason)) return undefined;
    throw failure;
  }
}

/** The accounts that errors name. */
const awayOf = new WeakMap<object, string>();

/** Adds the name of the account to the error of storage that is unavailable, if the app has several accounts. */
export async function ofAccount<Result>(account: { readonly name?: string }, call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    if (account.name === undefined || !isOutcomeUnknown(error)) throw error;
    const named = unavailable(`Storage is unavailable: the account ${account.name} does not respond.`, error);
    awayOf.set(named, account.name);
    throw named;
  }
}

/** Returns the result, or the name of the account that does not respond, if the app has several. */
export async function unlessAway<Result>(
  call: Promise<Result>,
): Promise<{ readonly result: Result; readonly away?: never } | { readonly result?: never; readonly away: string }> {
  try {
    return { result: await call };
  } catch (error) {
    const away = error instanceof Error ? awayOf.get(error) : undefined;
    if (away === undefined) throw error;
    return { away };
  }
}

/** The wait for an account that the work can do without. One that is slow then delays the work as little as one that is away. */
const PATIENCE_MS = 5_000;

/** Returns undefined if storage is unavailable, or the call takes longer than work waits that can do without its result. */
export function unlessSlow<Result>(call: Promise<Result>): Promise<Result | undefined> {
  const ignoreUnavailable = (error: unknown) => {
    if (!isOutcomeUnknown(error)) throw error;
    return undefined;
  };
  return Promise.race([call.catch(ignoreUnavailable), sleep(PATIENCE_MS, undefined, { ref: false })]);
}

/** Asks an account that the work can do without. Returns the result, or its name if it does not respond in time and the app has several. */
export async function askAccount<Result>(
  account: { readonly name?: string },
  call: Promise<Result>,
): ReturnType<typeof unlessAway<Result>> {
  const asked = unlessAway(ofAccount(account, call));
  const { name } = account;
  return name === undefined ? asked : ((await unlessSlow(asked)) ?? { away: name });
}

/** The accounts that did not respond, each once. */
export function awayIn(found: readonly { readonly away?: string | undefined }[]): string[] {
  return [...new Set(found.flatMap(({ away }) => away ?? []))];
}

function translate(error: unknown, name: string): unknown {
  if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
    return unavailable(NO_ANSWER, error);
  if (!isRestError(error)) return error;
  const code = storageCode(error.details) ?? error.code ?? '';
  const reason = code === 'CannotVerifyCopySource' ? COPY_REASONS[error.statusCode ?? 0] : REASONS[code];
  if (reason) return new StorageConflict(reason, actionIndex(error.message), error);
  // The role or the firewall of the other account, which a person mends while the work is repeated.
  if (code === 'CannotVerifyCopySource')
    return unavailable(
      `Storage is unavailable: it may not copy from ${name || 'the source'} (${error.statusCode}).`,
      error,
    );
  if (code in NOT_FOUND)
    return new RowkeyError('not-provisioned', describeMissing([`${NOT_FOUND[code]} ${name}`]), { cause: error });
  if (TOO_LARGE.has(code) || error.statusCode === 413)
    return new RowkeyError(
      'too-large',
      'The entity exceeds the limits of Table storage: 1 MiB, and 64 KiB for each property.',
      { cause: error },
    );
  const status = error.statusCode;
  if (code === 'InvalidHeaderValue' && error.message.includes('API version'))
    return new RowkeyError('wrong-setting', OLDER_API, { cause: error });
  // The filter is part of the URL, and the declaration may allow values of any length.
  if (status === 414 || status === 431)
    return new RowkeyError('invalid-input', 'The filter is too long for Table storage.', {
      accepted: 'shorter values',
      cause: error,
    });
  if (status === undefined || status === 408 || status === 429 || status >= 500) return unavailable(NO_ANSWER, error);
  return error;
}

/** The name of an error, with the status and the code of storage if it rejected a request. They contain no data, as the message may. */
export function kindOf(error: unknown): string {
  if (!isRestError(error)) return error instanceof Error ? error.name : 'failure';
  return `${error.name} (${error.statusCode} ${storageCode(error.details) ?? error.code})`;
}

function storageCode(details: unknown): string | undefined {
  if (typeof details !== 'object' || details === null) return undefined;
  if ('odataError' in details && typeof details.odataError === 'object' && details.odataError !== null)
    return 'code' in details.odataError && typeof details.odataError.code === 'string'
      ? details.odataError.code
      : undefined;
  return 'errorCode' in details && typeof details.errorCode === 'string' ? details.errorCode : undefined;
}

/** The service names the failed action of a transaction only as a prefix of the message: `2:The specified entity…`. */
function actionIndex(message: string): number {
  return Number(/(?:^|")(\d+):/.exec(message)?.[1] ?? 0);
}
