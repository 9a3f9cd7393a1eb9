import { addAccountsCommands } from '../cli/accounts-command.ts';
import { createCommand, run } from '../cli/command.ts';
import { openAccounts } from '../cli/open-accounts.ts';

await run(
  addAccountsCommands(createCommand('Moves data between the storage accounts of an app.'), { open: openAccounts }),
);
