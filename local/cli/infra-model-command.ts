import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import { importModel } from '../instance/import-model.ts';
import { loadModel } from '../instance/load-local-app.ts';
import { formatInfraModel } from './infra-model.ts';

/** Creates the command for a template of one's own. `infra` writes the template of the package. */
export function createInfraModelCommand(): Command {
  return new Command()
    .description('Prints the tables, queues and containers that the model needs, as JSON for a template of your own.')
    .argument(
      '[module]',
      'the file that exports "model" or "rowkey", such as ./model.ts; default: "main" of package.json',
    )
    .option('--out <file>', 'write to this file instead; its folder is created')
    .showHelpAfterError()
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
}
