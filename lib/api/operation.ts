import { requireRole } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import type { Engine } from '../engine/engine.ts';

/** Who calls, and on what. */
export interface View {
  readonly engine: Engine;
  /** Undefined for the app itself, which may read and write everything. */
  readonly caller: Caller | undefined;
  /** True on the last retry of a read, when a missing blob means data loss rather than a stale row. */
  readonly isLastAttempt: boolean;
}

/**
 * What callers can do is written once, as operations. HTTP routes, `POST /query` and the store in process are bindings: they turn their
 * own form of a request into the input of an operation, and its output into their form of a response.
 */
export interface Operation<Input, Output> {
  /** A read changes nothing, so it may be repeated and needs no audit log. */
  readonly kind: 'read' | 'write';
  /** The roles that may call it; undefined if no token is needed. `admit` may reject some of its inputs. */
  readonly roles: readonly string[] | undefined;
  /** Throws `forbidden` if the caller may not do this with the input. May read what decides it, such as the caller's own entity. */
  admit?(caller: Caller, input: Input, view: View): void | Promise<void>;
  /** Throws `invalid-input`, which names a member of the input. */
  run(view: View, input: Input): Promise<Output>;
}

/** `read` makes the input: a caller without a role learns nothing about what is accepted. */
export async function perform<Input, Output>(
  operation: Operation<Input, Output>,
  view: View,
  read: () => Input | Promise<Input>,
): Promise<Output> {
  const { caller } = view;
  if (!caller) return operation.run(view, await read());
  if (operation.roles) requireRole(caller, operation.roles);
  const input = await read();
  // The one place where a caller is admitted to an operation on an input. `run` gets the same input.
  await operation.admit?.(caller, input, view);
  return operation.run(view, input);
}
