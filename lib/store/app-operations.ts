import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { Caller } from '../access/token.ts';
import type { Execute } from '../api/app-operation.ts';
import type { Entities } from '../api/entity-types.ts';
import { toRequestId } from '../api/writes.ts';
import { RowkeyError } from '../base/errors.ts';
import type { LinkedModel } from '../define/define-model.ts';
import type { Operations } from '../define/define-operation.ts';
import { isExplaining } from '../storage/explain.ts';
import type { StoreSource } from './call.ts';
import { type CallerStore, createStore, type UnlimitedStore } from './store.ts';

/** The implementations of the operations that an app declares. */

/** A call of an operation. */
export interface OperationCall<Input, All extends Entities, Own extends Operations = Operations> {
  readonly input: Input;
  readonly caller: Caller;
  /** The store of the caller, with their rules. The caller is the author of its changes. */
  readonly store: CallerStore<All, Own>;
  /** The store without rules. The caller is the author of its changes, unless a call names another one. */
  readonly unlimited: UnlimitedStore<All, Own>;
  /** 36 characters, in the form of a UUID. A repeated request has that of the first; any other is unique. The option `requestId` of a create accepts it. */
  readonly requestId: string;
  /** True if the caller asks for an explanation: writes are not made. Do nothing outside the stores. */
  readonly isExplained: boolean;
}

interface OfModel {
  readonly entities: Entities;
  readonly operations: Operations;
}

/** A function for each operation of a model, by its name. What it returns is checked against the output of the operation. */
export type Implementations<Of extends OfModel> = {
  readonly [Name in keyof Of['operations']]: (
    call: OperationCall<z.output<Of['operations'][Name]['input']>, Of['entities'], Of['operations']>,
  ) => Promise<z.input<Of['operations'][Name]['output']>>;
};

type Implement = (call: OperationCall<unknown, Entities>) => Promise<unknown>;

/** Throws an error that names each operation without an implementation, and each implementation without an operation. */
export function checkImplementations({ operations }: Pick<LinkedModel, 'operations'>, given: object = {}): void {
  const missing = Object.keys(operations).filter((name) => !Object.hasOwn(given, name));
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(operations, name));
  const errors = [
    ...missing.map((name) => `The operation "${name}" has no implementation.`),
    ...unknown.map((name) => `The model has no operation "${name}" for its implementation.`),
  ];
  if (errors.length > 0) throw new Error(errors.join('\n'));
}

/** Runs the implementations with stores on the engine of the request. The binding of the operation records the changes of the caller. */
export function createExecute(
  { list, operations: declared }: LinkedModel,
  implementations: object | undefined,
  { limits, record }: Pick<StoreSource, 'limits' | 'record'>,
): Execute {
  const execute: Execute = async ({ name, kind, repeatable }, { engine, caller }, { given, id }) => {
    // Its types are those of the declaration of the operation, by which the input has been parsed.
    const { [name]: implement } = { ...implementations } as Readonly<Record<string, Implement>>;
    if (!implement || !caller)
      throw new RowkeyError(
        'wrong-operation',
        `The operation "${name}" needs an implementation and a caller. Give createRowkey or createTestStore its implementation in operations, and call it by store.as(caller).`,
      );
    const { subject: author } = caller;
    const unlimited = createStore(list, {
      engine: async () => engine,
      limits,
      operations: { declared, execute },
      author,
      identify: repeatable && id !== undefined ? numberedIds(id) : undefined,
      readsFor: kind === 'read' ? name : undefined,
      // A read has no record of its own, in which the reads of a steward would be.
      record: (by, write) => (by === author && kind === 'write' ? write() : record(by, write)),
    });
    return implement({
      input: given,
      caller,
      store: unlimited.as(caller),
      unlimited,
      requestId: id ?? randomUUID(),
      isExplained: isExplaining(),
    });
  };
  return execute;
}

/** An id for each call of a request: an implementation that runs again makes its calls of one kind in the same order. */
function numberedIds(id: string): (parts: readonly string[]) => string {
  const counts = new Map<string, number>();
  return (parts) => {
    const kind = parts.join('/');
    const position = counts.get(kind) ?? 0;
    counts.set(kind, position + 1);
    return toRequestId([...parts, id, String(position)]);
  };
}
