#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import { type Answers, ask, DEFAULT_NAME, DEFAULT_PAGE, PAGE_NAMES } from './ask.ts';
import { createApp } from './create-app.ts';

/** `npm create rowkey`: writes an app that uses Rowkey into a new folder. */

const TEMPLATE = fileURLToPath(new URL('template', import.meta.url));

interface Options extends Pick<Partial<Answers>, 'page'> {
  readonly yes?: true;
}

const program = new Command('npm create rowkey')
  .usage('[name] -- [options]')
  .description('Writes an app that uses Rowkey into a new folder: a model, its tests, and a page if you want one.')
  .argument('[name]', `the name of the app and of its folder; default: asks in a terminal, else ${DEFAULT_NAME}`)
  .addOption(
    new Option('--page <kind>', `the page of the app; default: asks in a terminal, else ${DEFAULT_PAGE}`).choices(
      PAGE_NAMES,
    ),
  )
  .option('--yes', 'ask nothing')
  .showHelpAfterError()
  .action(create);

async function create(given: string | undefined, { page, yes }: Options): Promise<void> {
  const known = { ...(given !== undefined && { name: given }), ...(page && { page }) };
  const isAsking = process.stdin.isTTY && !yes;
  const answers = isAsking ? await ask(known) : { name: DEFAULT_NAME, page: DEFAULT_PAGE, ...known };
  if (!answers) {
    process.exitCode = 1;
    return;
  }
  await createApp({ template: TEMPLATE, parent: process.cwd(), ...answers });
  const { name } = answers;
  console.log(`\nThe app is in the folder ${name}. To start it:\n\n  cd ${name} && npm install\n  npm start\n`);
}

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
