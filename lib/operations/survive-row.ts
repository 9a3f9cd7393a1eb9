import { hasCode, RowkeyError } from '../base/errors.ts';
import { isStorageError } from '../storage/errors.ts';

/**
 * Runs one step of a command over many rows. If a row itself makes the step fail, calls `instead` with the reason, which has no values
 * of the row, so that the row does not keep the command from the others. Throws if storage, a key or a setting is the cause.
 */
export async function surviveRow<Result>(
  step: () => Promise<Result>,
  instead: (reason: string) => Result,
): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    if (isStorageError(error) || !isOfRow(error)) throw error;
    // The message of an error that is not the engine's own may have a value.
    const why = error instanceof RowkeyError ? error.message : `${error instanceof Error ? error.name : 'an error'}.`;
    return instead(`The row cannot be processed: ${why}`);
  }
}

function isOfRow(error: unknown): boolean {
  return !(error instanceof RowkeyError) || hasCode(error, ...OF_ROW);
}

/** The codes of errors that follow from what a row has. */
const OF_ROW = ['needs-repair', 'invalid-input', 'too-large', 'wrong-output', 'wrong-operation', 'not-found'] as const;
