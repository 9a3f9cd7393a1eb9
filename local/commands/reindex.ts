import { run } from '../cli/command.ts';
import { localTarget } from '../cli/local-target.ts';
import { createReindexCommand } from '../cli/operator-commands.ts';

await run(createReindexCommand(localTarget));
