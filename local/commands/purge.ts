import { run } from '../cli/command.ts';
import { createPurgeCommand } from '../cli/operator-commands.ts';

await run(createPurgeCommand());
