import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { checkApp } from '../instance/check-app.ts';
import { checkStored } from './check-stored.ts';
import { createCommand } from './command.ts';
import { dataFolderOf } from './start-command.ts';

/** Creates the command that says what is wrong with an app before it is started. */
export function createCheckCommand(): Command {
  return createCommand(
    'Says what is wrong with the model, the functions and host.json of an app, without starting it, and whether the data of its running instance allows the model.',
  )
    .argument('[folder]', 'the folder of the app', '.')
    .action(async (folder: string, options: { readonly data: string }) => {
      const { model, functions, warnings } = await checkApp(folder);
      for (const warning of warnings) console.warn(warning);
      const data = dataFolderOf(folder, options.data);
      const isCompared = await checkStored(data, model);
      console.log(
        `Nothing is wrong: ${count(model.list.length, 'entity', 'entities')}, ${count(functions, 'function')}.`,
      );
      if (!isCompared && existsSync(data))
        console.log(`The stored data was not compared, because no instance runs on ${data}.`);
    });
}

function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`;
}
