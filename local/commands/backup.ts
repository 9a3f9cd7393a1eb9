import { createBackupCommand } from '../cli/backup-command.ts';
import { run } from '../cli/command.ts';
import { backupOpener } from '../cli/open-backup.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createBackupCommand(backupOpener(deployedApp)));
