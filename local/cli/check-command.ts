import { Command } from 'commander';
import { checkApp } from '../instance/check-app.ts';

/** Creates the command that says what is wrong with an app before it is started. */
export function createCheckCommand(): Command {
  return new Command()
    .description('Says what is wrong with the model, the functions and host.json of an app, without starting it.')
    .argument('[folder]', 'the folder of the app', '.')
    .showHelpAfterError()
    .action(async (folder: string) => {
      const { model, functions, warnings } = await checkApp(folder);
      for (const warning of warnings) console.warn(warning);
      console.log(
        `Nothing is wrong: ${count(model.list.length, 'entity', 'entities')}, ${count(functions, 'function')}.`,
      );
    });
}

function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`;
}
