import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { moduleFile } from '../instance/module-file.ts';

/** A script that imports only Node modules, so that a job which has a token for Azure can run it without installing anything. */
const SMOKE = fileURLToPath(moduleFile('../commands/smoke', import.meta.url));

/** Creates the command that checks a deployed API. */
export function createSmokeCommand(): Command {
  return new Command()
    .description(
      'Checks that a deployed API serves: its health, its description, and 401 without a token for each route.',
    )
    .requiredOption('--url <url>', 'the URL of the API')
    .option('--patience <seconds>', 'how long to repeat a request that fails; 600 by default')
    .showHelpAfterError()
    .action(({ url, patience }: { readonly url: string; readonly patience?: string }) => {
      const words = ['--url', url, ...(patience === undefined ? [] : ['--patience', patience])];
      process.exitCode = spawnSync(process.execPath, [SMOKE, ...words], { stdio: 'inherit' }).status ?? 1;
    });
}
