import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { model } from '../../model/model.ts';
import { run } from '../cli/command.ts';
import { formatInfraModel } from '../cli/infra-model.ts';

export const MODEL_FILE = new URL('../../infra/model.json', import.meta.url);

async function writeModel(): Promise<void> {
  const before = await readFile(MODEL_FILE, 'utf8').catch(() => '');
  const after = formatInfraModel(model);
  await writeFile(MODEL_FILE, after);
  console.log(before === after ? 'infra/model.json is up to date.' : 'infra/model.json updated.');
}

const program = new Command()
  .description('Writes the tables, queues and containers of the model into infra/model.json, which the template reads.')
  .action(writeModel);
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await run(program);
