import { requireRole } from '../access/rule.ts';
import type { View } from './view.ts';

/**
 * What callers can do is written once, as operations. HTTP routes, `POST /query` and the store in process are bindings: they turn their
 * own form of a request into the input of an operation, and its output into their form of a response.
 */
export interface Operation<Input, Output> {
  /** The roles that may call it; `admit` may reject some of its inputs. */
  readonly roles: readonly string[];
  /** Throws `forbidden` if the caller may not do this, before anything is read. Not called for the app itself, which may do all. */
  admit?(caller: Caller, input: Input): void;
  /** Throws `invalid-input`, which names a member of the input. */
  run(view: View, input: Input): Promise<Output>;
}

type Caller = NonNullable<View['caller']>;

/**
 * The one place where a caller is admitted to an operation. `read` makes the input: a caller without a role learns nothing about what is
 * accepted.
 */
export async function perform<Input, Output>(
  { roles, admit, run }: Operation<Input, Output>,
  view: View,
  read: () => Input | Promise<Input>,
): Promise<Output> {
  if (view.caller) requireRole(view.caller, roles);
  const input = await read();
  if (view.caller) admit?.(view.caller, input);
  return run(view, input);
}
