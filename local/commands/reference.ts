import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { run } from '../cli/command.ts';
import { createProgram } from '../cli/program.ts';
import { formatCommands } from '../reference/commands-page.ts';
import { formatMessages } from '../reference/messages-page.ts';
import { formatOptions } from '../reference/options-page.ts';
import { formatRoutes } from '../reference/routes-page.ts';
import { formatSettings } from '../reference/settings-page.ts';

/** The pages that are written from their sources, by file. */
export const REFERENCE: Readonly<Record<string, () => string>> = {
  'docs/reference/options.md': formatOptions,
  'docs/reference/routes.md': formatRoutes,
  'docs/reference/messages.md': formatMessages,
  'docs/reference/commands.md': () => formatCommands(createProgram()),
  'docs/reference/configuration.md': () => formatSettings(),
};

async function writeReference(): Promise<void> {
  for (const [file, format] of Object.entries(REFERENCE)) {
    const page = new URL(`../../${file}`, import.meta.url);
    const before = await readFile(page, 'utf8').catch(() => '');
    const after = format();
    await writeFile(page, after);
    console.log(`${file} ${before === after ? 'is up to date' : 'updated'}.`);
  }
}

const program = new Command()
  .description(`Writes ${Object.keys(REFERENCE).join(', ')} from the code.`)
  .action(writeReference);
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await run(program);
