import type { Caller } from '../access/token.ts';
import { type Execute, noteThrown } from '../api/app-operation.ts';
import { type Operation, perform } from '../api/operation.ts';
import { toRequestId } from '../api/writes.ts';
import { RowkeyError } from '../base/errors.ts';
import type { RequestLimit } from '../define/declaration/request-limit.ts';
import type { Operations } from '../define/define-operation.ts';
import type { Engine } from '../engine/engine.ts';

/** What a store is on. */
export interface StoreSource {
  /** Throws `wrong-setting` while a setting is invalid, or the model does not match what is stored. */
  engine(): Promise<Engine>;
  /** The limits of requests of the model. */
  readonly limits?: readonly RequestLimit[] | undefined;
  /** Runs a write and records its changes in the audit log before it returns or throws. */
  record<Result>(by: string, write: () => Promise<Result>): Promise<Result>;
  /** The operations of the app, and what executes them. */
  readonly operations?: { readonly declared: Operations; readonly execute: Execute } | undefined;
  /** The author of changes for which a call names none. Default: the subject of the caller, or `app`. */
  readonly author?: string;
  /** The id of a call that names none. */
  readonly identify?: ((parts: readonly string[]) => string) | undefined;
  /** The operation that reads, and may therefore write nothing. */
  readonly readsFor?: string | undefined;
}

/** The author in the audit log if the caller names none. */
const THE_APP = 'app';

interface Author {
  /** The subject in the audit log. */
  readonly by?: string | undefined;
}

/** How the members of a store perform their operations. */
export interface Call {
  /** Performs an operation for a caller, or for the app itself, which may do everything. `input` throws `invalid-input`. */
  <Input, Output>(operation: Operation<Input, Output>, input: () => Input, options?: Author): Promise<Output>;
  /** The id of a call in the engine's form. Undefined if the call is not repeated. */
  identify(parts: readonly string[], requestId: string | undefined): string | undefined;
}

export function createCall(source: StoreSource, caller?: Caller): Call {
  const { author = caller?.subject ?? THE_APP, readsFor } = source;
  // The function of the app has counted the request itself.
  const limits = source.limits?.filter(({ entity, operation }) => (entity ?? operation) !== undefined);
  async function run<Input, Output>(
    operation: Operation<Input, Output>,
    input: () => Input,
    { by = author }: Author = {},
  ): Promise<Output> {
    if (readsFor !== undefined && operation.kind === 'write')
      throw new RowkeyError(
        'wrong-operation',
        `The operation "${readsFor}" is declared as a read, and calls ${operation.name}, which writes.`,
      );
    const call = {
      engine: await source.engine(),
      caller,
      limits,
      record: <Done>(write: () => Promise<Done>) => source.record(by, write),
    };
    return (
      await perform(operation, call, input).catch((error: unknown) => {
        noteThrown(error, operation);
        throw error;
      })
    ).output;
  }
  return Object.assign(run, {
    identify: (parts: readonly string[], requestId: string | undefined) =>
      requestId === undefined
        ? source.identify?.(parts)
        : // Two callers may choose the same id.
          toRequestId([...parts, ...(caller ? [caller.subject] : []), requestId]),
  });
}
