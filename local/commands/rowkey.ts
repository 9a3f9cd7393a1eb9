#!/usr/bin/env node
// The command line of the package, `npx rowkey <command>`. In this repository each command is an npm script.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { DATA_FOLDER, run } from '../cli/command.ts';
import { formatInfraModel } from '../cli/infra-model.ts';
import { createPurgeCommand, createReindexCommand, createVerifyCommand } from '../cli/operator-commands.ts';
import type { TargetSource } from '../cli/target.ts';
import { importModel } from '../instance/import-model.ts';

const remote: TargetSource = {
  create: (description) =>
    new Command()
      .description(description)
      .requiredOption('--url <url>', 'the URL of the API')
      .option('--token <token>', 'an operator token; prefer the variable ROWKEY_TOKEN, which other users cannot see')
      .option('--data <folder>', 'the folder that keeps the progress of an interrupted run', DATA_FOLDER),
  async resolve({ url = '', token = process.env.ROWKEY_TOKEN }) {
    if (!token) throw new Error(`No token for ${url}: set ROWKEY_TOKEN.`);
    return { url: url.replace(/\/+$/, ''), token };
  },
};

const infraModel = new Command()
  .description('Prints the tables, queues and containers that the model needs, as JSON for the deployment template.')
  .argument('<module>', 'the file of your app that exports "model" or "rowkey", such as ./model.ts')
  .option('--out <file>', 'write to this file instead')
  .action(async (file: string, { out }: { readonly out?: string }) => {
    const model = await importModel(resolve(file));
    if (!model) throw new Error(`${file} exports neither a "model" of defineModel nor a "rowkey" of createRowkey.`);
    const text = formatInfraModel(model);
    if (out === undefined) process.stdout.write(text);
    else await writeFile(out, text);
  });

const program = new Command('rowkey')
  .description('Operates an app that uses the package.')
  .addCommand(createVerifyCommand(remote).name('verify'))
  .addCommand(createReindexCommand(remote).name('reindex'))
  .addCommand(createPurgeCommand(remote).name('purge'))
  .addCommand(infraModel.name('infra-model'))
  .showHelpAfterError();

await run(program);
