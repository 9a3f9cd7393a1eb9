import { run } from '../cli/command.ts';
import { createRotateKeyCommand } from '../cli/rotate-key-command.ts';

await run(createRotateKeyCommand());
