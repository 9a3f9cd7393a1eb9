import { run } from '../cli/command.ts';
import { createRolesCommand } from '../cli/roles-command.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createRolesCommand(async () => deployedApp.model));
