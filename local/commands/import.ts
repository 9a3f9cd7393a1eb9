import { run } from '../cli/command.ts';
import { createImportCommand } from '../cli/import-command.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createImportCommand(deployedApp));
