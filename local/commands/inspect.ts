import { run } from '../cli/command.ts';
import { createInspectCommand } from '../cli/inspect-command.ts';

await run(createInspectCommand());
