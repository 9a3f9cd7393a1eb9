import { run } from '../cli/command.ts';
import { createTokenCommand } from '../cli/token-command.ts';

await run(createTokenCommand());
