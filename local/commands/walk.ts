import { run } from '../cli/command.ts';
import { createWalkCommand } from '../cli/walk-command.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createWalkCommand(async () => deployedApp.model));
