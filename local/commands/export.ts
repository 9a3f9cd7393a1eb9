import { run } from '../cli/command.ts';
import { createExportCommand } from '../cli/export-command.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createExportCommand(deployedApp));
