import { run } from '../cli/command.ts';
import { localTarget } from '../cli/local-target.ts';
import { createVerifyCommand } from '../cli/operator-commands.ts';

await run(createVerifyCommand(localTarget));
