import { Command } from 'commander';
import { z } from 'zod';
import { RowkeyError } from '../../lib/base/errors.ts';

export const DATA_FOLDER = '.rowkey';

/** A command that fails prints one sentence on standard error and sets exit code 1. Start it with `run`. */
export function createCommand(description: string): Command {
  return new Command()
    .description(description)
    .option('--data <folder>', 'the data folder of the local instance', DATA_FOLDER)
    .showHelpAfterError();
}

export async function run(program: Command): Promise<void> {
  try {
    await program.parseAsync();
  } catch (error) {
    console.error(formatError(error));
    process.exit(1);
  }
}

/**
 * A model that is not valid fails while its module is loaded, before a command runs. Its errors say what to change, and a stack
 * trace of the engine does not.
 */
process.on('uncaughtException', (error: unknown) => {
  // The reader of the output, such as `head`, has had enough.
  const isPipeClosed = error instanceof Error && 'code' in error && error.code === 'EPIPE';
  if (!isPipeClosed) console.error(error instanceof Error && error.name === 'DeclarationError' ? error.message : error);
  process.exit(1);
});

export function formatError(error: unknown): string {
  if (error instanceof z.ZodError) return error.issues.map(({ message }) => message).join('; ');
  const accepted = error instanceof RowkeyError && error.accepted ? ` Accepted: ${error.accepted}.` : '';
  return error instanceof Error ? `${error.message}${accepted}` : String(error);
}
