import { run } from '../cli/command.ts';
import { createSecretCommand } from '../cli/secret-command.ts';

await run(createSecretCommand());
