import { format } from 'node:util';
import { type Command, CommanderError } from 'commander';
import type { LocalApp } from '../local/instance/local-app.ts';
import { removeProgress } from './start-process.ts';

/** The commands that a host in the process of the test calls most often. Another one is a process of its own. */
const COMMANDS: Readonly<Record<string, (app: LocalApp) => Promise<Command>>> = {
  import: async (app) => (await import('../local/cli/import-command.ts')).createImportCommand(app),
  export: async (app) => (await import('../local/cli/export-command.ts')).createExportCommand(app),
  purge: async () => (await import('../local/cli/operator-commands.ts')).createPurgeCommand(),
  replay: async () => (await import('../local/cli/operator-commands.ts')).createReplayCommand(),
  history: async () => (await import('../local/cli/undelete-command.ts')).createHistoryCommand(),
  undelete: async () => (await import('../local/cli/undelete-command.ts')).createUndeleteCommand(),
  verify: async () => (await import('../local/cli/operator-commands.ts')).createVerifyCommand(),
  reindex: async () => (await import('../local/cli/operator-commands.ts')).createReindexCommand(),
};

/** A command has the outputs and the exit code of the process for itself. */
let former: Promise<unknown> = Promise.resolve();

/** Runs a command of `local/` in this process and returns its exit code and output; undefined if it has to be a process of its own. */
export function runInProcess(script: string, words: readonly string[], app: LocalApp) {
  const create = COMMANDS[script];
  if (!create) return undefined;
  const run = former.then(async () => capture(await create(app), words));
  former = run.catch(() => undefined);
  return run;
}

async function capture(program: Command, words: readonly string[]): Promise<{ code: number; said: string }> {
  const { formatError } = await import('../local/cli/command.ts');
  const chunks: string[] = [];
  const { log, error: logError } = console;
  const { exitCode } = process;
  const write = process.stderr.write;
  console.log = (...values) => void chunks.push(`${format(...values)}\n`);
  console.error = console.log;
  process.stderr.write = (chunk: string | Uint8Array) => chunks.push(String(chunk)) > 0;
  process.exitCode = 0;
  try {
    await program.exitOverride().parseAsync(words, { from: 'user' });
    return { code: Number(process.exitCode), said: removeProgress(chunks.join('')) };
  } catch (error) {
    // Commander has printed its own errors.
    if (!(error instanceof CommanderError)) chunks.push(`${formatError(error)}\n`);
    return { code: 1, said: removeProgress(chunks.join('')) };
  } finally {
    Object.assign(console, { log, error: logError });
    process.stderr.write = write;
    process.exitCode = exitCode;
  }
}
