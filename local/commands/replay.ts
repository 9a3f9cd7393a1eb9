import { run } from '../cli/command.ts';
import { createReplayCommand } from '../cli/operator-commands.ts';

await run(createReplayCommand());
