import { run } from '../cli/command.ts';
import { createVerifyCommand } from '../cli/operator-commands.ts';

await run(createVerifyCommand());
