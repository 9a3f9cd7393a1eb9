import { Command } from 'commander';
import { z } from 'zod';

export const DATA_FOLDER = '.rowkey';

/** A command line whose every failure is one sentence on standard error and exit code 1. */
export function createCommand(description: string): Command {
  return new Command()
    .description(description)
    .option('--data <folder>', 'where the data of the local instance is kept', DATA_FOLDER)
    .showHelpAfterError();
}

/** Runs a command line. */
export async function run(program: Command): Promise<void> {
  try {
    await program.parseAsync();
  } catch (error) {
    console.error(formatError(error));
    process.exit(1);
  }
}

function formatError(error: unknown): string {
  if (error instanceof z.ZodError) return error.issues.map(({ message }) => message).join('; ');
  return error instanceof Error ? error.message : String(error);
}
