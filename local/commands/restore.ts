import { run } from '../cli/command.ts';
import { restoreOpener } from '../cli/open-restore.ts';
import { createRestoreCommand } from '../cli/restore-command.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createRestoreCommand(restoreOpener(deployedApp)));
