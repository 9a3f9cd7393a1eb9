import { Argument, InvalidArgumentError } from 'commander';
import { createCommand, run } from '../cli/command.ts';
import { localConnections } from '../cli/open-accounts.ts';
import { readInstance } from '../instance/instance.ts';
import { readSecrets } from '../instance/secrets.ts';
import { accountNumber } from '../instance/storage-accounts.ts';

interface Options {
  readonly data: string;
  readonly account: number;
}

/** Prints one secret of the running instance and nothing else: `npm run -s secret -- storage`. */
const program = createCommand('Prints the connection string of the storage emulator, or the key of the functions host.')
  .addArgument(new Argument('<which>', 'the secret to print').choices(['storage', 'host']))
  .option('--account <name>', 'one of several storage accounts, such as second', toNumber, 0)
  .action(async (which: 'storage' | 'host', { data, account }: Options) => {
    const instance = await readInstance(data);
    if (!instance) throw new Error(`No instance is running on the data folder ${data}: run npm start first.`);
    const { hostKey } = await readSecrets(data);
    if (account >= instance.accounts) throw new Error(`The instance has ${instance.accounts} storage accounts.`);
    console.log(which === 'host' ? hostKey : (await localConnections(data))?.strings[account]);
  });

function toNumber(name: string): number {
  const number = accountNumber(name);
  if (number !== undefined) return number;
  throw new InvalidArgumentError('An account must be first, second, and so on to tenth.');
}

await run(program);
