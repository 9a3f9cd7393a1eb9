import { z } from 'zod';
import { appMistake, callApp } from '../base/app-mistake.ts';
import { type ErrorCode, hasCode, isKnownError, RowkeyError } from '../base/errors.ts';
import { findNotJson, MAX_BODY_DEPTH, sayNotJson } from '../base/json-value.ts';
import { onceFor } from '../base/once.ts';
import { CheckFailed, parse } from '../define/codec/validation.ts';
import type { DeclaredOperation, Operations } from '../define/define-operation.ts';
import { describeIssues } from '../define/schema/issues.ts';
import type { Binding, One } from './entity-types.ts';
import type { Operation, View } from './operation.ts';

/** The operations that an app declares, beside those of its entities. */

/** The calls of the operations of an app. */
export interface OperationCalls<Own extends Operations, As extends Binding> {
  /**
   * The operations of the app by name.
   *
   * @example
   * const { vehicleId } = await client.operations.checkIn({ depot: 'north', plate: 'AB 12345' });
   */
  readonly operations: {
    readonly [Name in keyof Own]: (
      input: z.input<Own[Name]['input']>,
      options?: Omit<As['create'], 'by'>,
    ) => One<As, z.output<Own[Name]['output']>>;
  };
}

interface OperationInput {
  /** The input as the schema parsed it. */
  readonly given: unknown;
  /** Identifies a request that may be repeated. */
  readonly id: string | undefined;
  readonly execute: Execute;
}

/** Runs the implementation of an operation. */
export type Execute = (
  operation: DeclaredOperation,
  view: View,
  request: Pick<OperationInput, 'given' | 'id'>,
) => Promise<unknown>;

/**
 * The codes by which a call rejects what it is given. The implementation of an operation has made that of its calls of a store: its own caller has
 * not sent it, and could correct nothing.
 */
const OF_GIVEN = [
  'invalid-input',
  'too-large',
  'unsupported-media-type',
  'range-not-satisfiable',
  'length-required',
  'method-not-allowed',
] as const satisfies readonly ErrorCode[];

/** The calls of a store that have thrown these errors, to tell them from what an implementation throws itself. */
const callsOf = new WeakMap<object, string>();

/** Notes which call of a store has thrown an error. `entity` has the fields that may be named in a log. */
export function noteThrown(error: unknown, { name, entity }: Pick<Operation<never, unknown>, 'name' | 'entity'>): void {
  if (!hasCode(error, ...OF_GIVEN) || error instanceof CheckFailed || callsOf.has(error)) return;
  const isDeclared = error.field !== undefined && Object.hasOwn(entity?.columns ?? {}, error.field);
  callsOf.set(error, isDeclared ? `${name}, for "${error.field}"` : name);
}

/**
 * What a caller gets for an error of code of the app, such as `The operation "join"`: what it means for the caller, or `wrong-operation`.
 */
export function toCallersError(what: string, error: unknown): RowkeyError {
  if (!isKnownError(error)) return appMistake(what, error);
  const call = callsOf.get(error);
  if (call === undefined) return error;
  const why = `${what} gives ${call} what it does not accept (${error.code}).`;
  return new RowkeyError('wrong-operation', why, { cause: error });
}

/** The input of an operation. Throws `invalid-input`, and `wrong-operation` if a check of its schema throws. */
export function parseInput({ name, input }: DeclaredOperation, given: unknown): unknown {
  return parse(input, given, `The operation "${name}"`);
}

/** An operation of an app, bound like the others. Throws what the implementation throws for its caller, `wrong-output`, and `wrong-operation`. */
export const operationOf = onceFor((declared: DeclaredOperation): Operation<OperationInput, unknown> => {
  const { name, summary, kind, roles, input, output, repeatable } = declared;
  return {
    name,
    summary,
    kind,
    roles,
    isOfApp: true,
    ...(repeatable ? { repeatable } : {}),
    input: () => input,
    output: () => output,
    async run(view, { execute, ...request }) {
      const returned = await execute(declared, view, request).catch((error: unknown) => {
        throw toCallersError(`The operation "${name}"`, error);
      });
      const parsed = checkOutput(declared, returned);
      const found = parsed.success && parsed.data !== undefined ? findNotJson(parsed.data, MAX_BODY_DEPTH) : undefined;
      if (parsed.success && !found) return parsed.data;
      const wrong = found
        ? [{ field: found.path.join('.'), message: sayNotJson(found) }]
        : describeIssues(parsed.error ?? new z.ZodError([]), returned, () => 'is not declared');
      const members = wrong
        .map(({ field, message }) => `${field === '' ? 'what it returns' : `"${field}"`} ${message}`)
        .join(', ');
      throw new RowkeyError('wrong-output', `The operation "${name}" does not return what it declares: ${members}.`);
    },
  };
});

function checkOutput({ name, output }: DeclaredOperation, returned: unknown) {
  return callApp(`The operation "${name}"`, () => output.safeParse(returned));
}
