import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Command } from 'commander';
import { loadModel } from '../instance/load-local-app.ts';
import { writeInfra } from './infra-command.ts';

/** Creates the command that deploys an app from this machine. */
export function createDeployCommand(): Command {
  return new Command()
    .description(
      'Deploys an app to Azure from this machine: writes the template, and runs azd up, the Azure Developer CLI.',
    )
    .argument('[folder]', 'the folder of the app', '.')
    .showHelpAfterError()
    .action(async (folder: string) => {
      if (spawnSync('azd', ['version'], { stdio: 'ignore' }).status !== 0)
        throw new Error(
          'The Azure Developer CLI is not installed: https://aka.ms/azd-install. Or push to GitHub, which runs .github/workflows/deploy.yml.',
        );
      await writeInfra(folder, await loadModel(folder));
      const azd = spawn('azd', ['up'], { cwd: folder, stdio: 'inherit' });
      const [code] = await once(azd, 'exit');
      process.exitCode = code ?? 1;
    });
}
