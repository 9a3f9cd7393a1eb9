import { run } from '../cli/command.ts';
import { createUndeleteCommand } from '../cli/undelete-command.ts';

await run(createUndeleteCommand());
