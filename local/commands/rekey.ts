import { run } from '../cli/command.ts';
import { createRekeyCommand } from '../cli/operator-commands.ts';

await run(createRekeyCommand());
