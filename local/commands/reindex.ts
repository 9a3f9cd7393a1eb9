import { run } from '../cli/command.ts';
import { createReindexCommand } from '../cli/operator-commands.ts';

await run(createReindexCommand());
