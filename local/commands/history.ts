import { run } from '../cli/command.ts';
import { createHistoryCommand } from '../cli/undelete-command.ts';

await run(createHistoryCommand());
