import { join } from 'node:path';
import type { Command } from 'commander';
import { rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { readInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';

export function createRotateKeyCommand(): Command {
  return createCommand('Adds a key-encryption key to the local instance and makes it the current one.').action(rotate);
}

/** In Azure an operator adds the key in Key Vault. A running instance uses the new key without a restart. */
async function rotate({ data }: { readonly data: string }): Promise<void> {
  const instance = await readInstance(data);
  await rotateLocalKey(join(data, 'keys.json'));
  console.log('The new key is in use. Values encrypted with earlier keys stay readable.');
  if (instance)
    console.log(
      `To wrap existing data keys with the new key, send POST ${instance.url}/api/operations/rewrap/{entity} as an operator.`,
    );
}
