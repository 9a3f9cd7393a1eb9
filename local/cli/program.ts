import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { loadModel } from '../instance/load-local-app.ts';
import { addAccountsCommands } from './accounts-command.ts';
import { createBackupCommand } from './backup-command.ts';
import { createCheckCommand } from './check-command.ts';
import { createCommand, run } from './command.ts';
import { createCopyCommand } from './copy-command.ts';
import { createDeployCommand } from './deploy-command.ts';
import { createExportCommand } from './export-command.ts';
import { createImportCommand } from './import-command.ts';
import { createInfraCommand } from './infra-command.ts';
import { createInfraModelCommand } from './infra-model-command.ts';
import { createInspectCommand } from './inspect-command.ts';
import { accountsOpener } from './open-accounts.ts';
import { backupOpener } from './open-backup.ts';
import { copyOpener } from './open-copy.ts';
import { restoreOpener } from './open-restore.ts';
import {
  createPurgeCommand,
  createReindexCommand,
  createRekeyCommand,
  createReplayCommand,
  createVerifyCommand,
} from './operator-commands.ts';
import { createPackageCommand } from './package-command.ts';
import { createRedirectsCommand } from './redirects-command.ts';
import { createRestoreCommand } from './restore-command.ts';
import { createRolesCommand } from './roles-command.ts';
import { createRotateKeyCommand } from './rotate-key-command.ts';
import { createSecretCommand } from './secret-command.ts';
import { createSmokeCommand } from './smoke-command.ts';
import { createDevCommand } from './start-command.ts';
import { createTokenCommand } from './token-command.ts';
import { createHistoryCommand, createUndeleteCommand } from './undelete-command.ts';
import { createWalkCommand } from './walk-command.ts';

const MANIFEST = new URL('../../package.json', import.meta.url);

/** The command line of the package, `npx rowkey <command>`. In this repository each command is an npm script. */
export async function runProgram(): Promise<void> {
  const { version } = JSON.parse(await readFile(MANIFEST, 'utf8'));
  await run(createProgram().version(version));
}

export function createProgram(): Command {
  const loadOwnModel = () => loadModel('.');
  return new Command('rowkey')
    .description('Develops, deploys and operates an app that uses the package.')
    .showHelpAfterError()
    .commandsGroup('Develop:')
    .addCommand(createDevCommand().name('dev'))
    .addCommand(createCheckCommand().name('check'))
    .addCommand(createTokenCommand().name('token'))
    .addCommand(createSecretCommand().name('secret'))
    .addCommand(createRotateKeyCommand().name('rotate-key'))
    .addCommand(createWalkCommand(loadOwnModel).name('walk'))
    .addCommand(createInspectCommand().name('inspect'))
    .commandsGroup('Deploy:')
    .addCommand(createInfraCommand().name('infra'))
    .addCommand(createInfraModelCommand().name('infra-model'))
    .addCommand(createPackageCommand().name('package'))
    .addCommand(createDeployCommand().name('deploy'))
    .addCommand(createSmokeCommand().name('smoke'))
    .addCommand(createRolesCommand(loadOwnModel).name('roles'))
    .addCommand(createRedirectsCommand().name('redirects'))
    .commandsGroup('Operate:')
    .addCommand(createImportCommand().name('import'))
    .addCommand(createExportCommand().name('export'))
    .addCommand(createCopyCommand(copyOpener()).name('copy'))
    .addCommand(createVerifyCommand().name('verify'))
    .addCommand(createReindexCommand().name('reindex'))
    .addCommand(createRekeyCommand().name('rekey'))
    .addCommand(createPurgeCommand().name('purge'))
    .addCommand(createReplayCommand().name('replay'))
    .addCommand(createHistoryCommand().name('history'))
    .addCommand(createUndeleteCommand().name('undelete'))
    .addCommand(createBackupCommand(backupOpener()).name('backup'))
    .addCommand(createRestoreCommand(restoreOpener()).name('restore'))
    .addCommand(
      addAccountsCommands(createCommand('Moves data between the storage accounts of an app.').name('accounts'), {
        open: accountsOpener(),
      }),
    );
}
