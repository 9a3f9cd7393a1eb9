#!/usr/bin/env node
// The command line of the package, `npx rowkey <command>`. In this repository each command is an npm script.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import { addAccountsCommands } from '../cli/accounts-command.ts';
import { createCommand, run } from '../cli/command.ts';
import { createExportCommand } from '../cli/export-command.ts';
import { createImportCommand } from '../cli/import-command.ts';
import { formatInfraModel } from '../cli/infra-model.ts';
import { accountsOpener } from '../cli/open-accounts.ts';
import {
  createPurgeCommand,
  createReindexCommand,
  createRekeyCommand,
  createReplayCommand,
  createVerifyCommand,
} from '../cli/operator-commands.ts';
import { importModel } from '../instance/import-model.ts';
import { loadModel } from '../instance/load-local-app.ts';

const infraModel = new Command()
  .description('Prints the tables, queues and containers that the model needs, as JSON for the deployment template.')
  .argument(
    '[module]',
    'the file that exports "model" or "rowkey", such as ./model.ts; default: "main" of package.json',
  )
  .option('--out <file>', 'write to this file instead; its folder is created')
  .action(async (file: string | undefined, { out }: { readonly out?: string }) => {
    const model = file === undefined ? await loadModel('.') : await importModel(resolve(file));
    if (!model) throw new Error(`${file} exports neither a "model" of defineModel nor a "rowkey" of createRowkey.`);
    const text = formatInfraModel(model);
    if (out === undefined) process.stdout.write(text);
    else {
      await mkdir(dirname(out), { recursive: true });
      await writeFile(out, text);
    }
  });

const program = new Command('rowkey')
  .description('Operates an app that uses the package.')
  .addCommand(createImportCommand().name('import'))
  .addCommand(createExportCommand().name('export'))
  .addCommand(createVerifyCommand().name('verify'))
  .addCommand(createReindexCommand().name('reindex'))
  .addCommand(createRekeyCommand().name('rekey'))
  .addCommand(createPurgeCommand().name('purge'))
  .addCommand(createReplayCommand().name('replay'))
  .addCommand(infraModel.name('infra-model'))
  .addCommand(
    addAccountsCommands(createCommand('Moves data between the storage accounts of an app.').name('accounts'), {
      open: accountsOpener(),
    }),
  )
  .showHelpAfterError();

await run(program);
