import { run } from '../cli/command.ts';
import { createCopyCommand } from '../cli/copy-command.ts';
import { copyOpener } from '../cli/open-copy.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(createCopyCommand(copyOpener(deployedApp)));
