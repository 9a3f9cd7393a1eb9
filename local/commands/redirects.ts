import { run } from '../cli/command.ts';
import { createRedirectsCommand } from '../cli/redirects-command.ts';

await run(createRedirectsCommand());
