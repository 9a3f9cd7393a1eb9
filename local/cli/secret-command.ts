import { Argument, type Command, InvalidArgumentError } from 'commander';
import { requireInstance } from '../instance/instance.ts';
import { readSecrets } from '../instance/secrets.ts';
import { accountNumber } from '../instance/storage-accounts.ts';
import { createCommand } from './command.ts';
import { localConnections } from './open-accounts.ts';

interface Options {
  readonly data: string;
  readonly account: number;
}

/** Creates the command that prints one secret of the running instance and nothing else: `npm run -s secret -- storage`. */
export function createSecretCommand(): Command {
  return createCommand('Prints the connection string of the storage emulator, or the key of the functions host.')
    .addArgument(new Argument('<which>', 'the secret to print').choices(['storage', 'host']))
    .option('--account <name>', 'one of several storage accounts, such as second', toNumber, 0)
    .action(async (which: 'storage' | 'host', { data, account }: Options) => {
      const { accounts } = await requireInstance(data);
      const { hostKey } = await readSecrets(data);
      if (account >= accounts)
        throw new Error(`The instance has ${accounts} storage accounts. Start it with --accounts ${account + 1}.`);
      console.log(which === 'host' ? hostKey : (await localConnections(data))?.strings[account]);
    });
}

function toNumber(name: string): number {
  const number = accountNumber(name);
  if (number !== undefined) return number;
  throw new InvalidArgumentError('An account must be first, second, and so on to tenth.');
}
