import { join } from 'node:path';
import { rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { createCommand, run } from '../cli/command.ts';
import { readInstance } from '../instance/instance.ts';

/** In Azure an operator adds the key in Key Vault. A running instance uses the new key without a restart. */
async function rotate({ data }: { readonly data: string }): Promise<void> {
  const instance = await readInstance(data);
  await rotateLocalKey(join(data, 'keys.json'));
  console.log('A new key is in use; what earlier ones have wrapped stays readable.');
  if (instance) console.log(`Wrap the rest anew: POST ${instance.url}/api/operations/rewrap/{entity}, by an operator.`);
}

await run(
  createCommand('Adds a key-encryption key to the local instance and makes it the current one.').action(rotate),
);
