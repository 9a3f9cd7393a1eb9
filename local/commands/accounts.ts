import { addAccountsCommands } from '../cli/accounts-command.ts';
import { createCommand, run } from '../cli/command.ts';
import { accountsOpener } from '../cli/open-accounts.ts';
import { deployedApp } from '../instance/deployed-app.ts';

await run(
  addAccountsCommands(createCommand('Moves data between the storage accounts of an app.'), {
    open: accountsOpener(deployedApp),
  }),
);
