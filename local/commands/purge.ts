import { run } from '../cli/command.ts';
import { localTarget } from '../cli/local-target.ts';
import { createPurgeCommand } from '../cli/operator-commands.ts';

await run(createPurgeCommand(localTarget));
