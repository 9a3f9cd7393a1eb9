import type { z } from 'zod';
import { RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
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

/** An operation of an app, bound like the others. Throws what the implementation throws, and `wrong-output`. */
export const operationOf = onceFor((declared: DeclaredOperation): Operation<OperationInput, unknown> => {
  const { name, summary, kind, roles, input, output, repeatable } = declared;
  return {
    name,
    summary,
    kind,
    roles,
    ...(repeatable ? { repeatable } : {}),
    input: () => input,
    output: () => output,
    async run(view, { execute, ...request }) {
      const returned = await execute(declared, view, request);
      const parsed = output.safeParse(returned);
      if (parsed.success) return parsed.data;
      const wrong = describeIssues(parsed.error, returned, () => 'is not declared');
      const members = wrong.map(({ field, message }) => `"${field}" ${message}`).join(', ');
      throw new RowkeyError('wrong-output', `The operation "${name}" does not return what it declares: ${members}.`);
    },
  };
});
