import { hasCode, isKnownError, NeverSucceeds, RowkeyError } from './errors.ts';

/** Mistakes in the code of an app: its callers learn that it failed, and its operators where. */

/**
 * Calls a function of a declaration. What it throws for its caller, a `RowkeyError`, is thrown as it is; anything else as `wrong-operation`.
 * `what` is the subject of the message, which is logged.
 */
export function callApp<Result>(what: string, call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    throw isKnownError(error) ? error : appMistake(what, error);
  }
}

/** The error for what code of an app threw. */
export function appMistake(what: string, thrown: unknown): RowkeyError {
  return new RowkeyError('wrong-operation', `${what} threw ${nameOf(thrown)}.`, { cause: thrown });
}

/** Without the message, which may have a value. */
function nameOf(error: unknown): string {
  if (error instanceof RowkeyError) return 'a RowkeyError with an unknown code';
  if (!(error instanceof Error)) return 'a value that is no error';
  return /^[A-Z]\w{0,60}$/.test(error.name) ? error.name : 'an error';
}

/**
 * Where an error was thrown that is a mistake or unexpected: the lines of its stack without the message, which may contain a key or a part of
 * the request. Empty for any other error, and for a value without a stack.
 */
export function framesOf(error: unknown): string[] {
  let thrown = error;
  // An error of a transaction has that of its action as the cause.
  while (hasCode(thrown, 'wrong-operation')) thrown = thrown.cause;
  if ((thrown === error && isKnownError(error)) || error instanceof NeverSucceeds) return [];
  const stack: unknown = thrown instanceof Error ? thrown.stack : undefined;
  const frames = typeof stack === 'string' ? stack.split('\n').filter((line) => line.startsWith('    at ')) : [];
  return frames.length > 0 ? [frames.join('\n')] : [];
}
