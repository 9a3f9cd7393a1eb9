import { Argument } from 'commander';
import { createCommand, run } from '../cli/command.ts';
import { createEmulatorAccount, formatConnectionString } from '../instance/azurite.ts';
import { readInstance } from '../instance/instance.ts';
import { readSecrets } from '../instance/secrets.ts';

/** Prints one secret of the running instance and nothing else: `npm run -s secret -- storage`. */
const program = createCommand('Prints the connection string of the storage emulator, or the key of the functions host.')
  .addArgument(new Argument('<which>', 'the secret to print').choices(['storage', 'host']))
  .action(async (which: 'storage' | 'host', { data }: { readonly data: string }) => {
    const instance = await readInstance(data);
    if (!instance) throw new Error(`No instance is running on the data folder ${data}: run npm start first.`);
    const { storageKey, hostKey } = await readSecrets(data);
    console.log(which === 'host' ? hostKey : formatConnectionString(createEmulatorAccount(storageKey), instance));
  });
await run(program);
