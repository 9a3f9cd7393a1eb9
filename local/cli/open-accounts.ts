import { VALID_FOR_MS } from '../../lib/access/grant.ts';
import type { Model } from '../../lib/define/define-model.ts';
import { layersOf, type PlacedLayer } from '../../lib/define/places/placement.ts';
import { type AppResources, resourcesOf } from '../../lib/operations/resources.ts';
import { fromEnvironment } from '../../lib/settings.ts';

import { openStorage, type Storage, type StorageOptions } from '../../lib/storage/storage.ts';
import { createEmulatorAccount, formatConnectionString } from '../instance/azurite.ts';
import { readInstance } from '../instance/instance.ts';
import { loadModel } from '../instance/load-local-app.ts';
import { readSecrets } from '../instance/secrets.ts';
import { storageOptions } from '../instance/storage-accounts.ts';

export interface OpenAccounts {
  readonly storage: Storage;
  readonly resources: AppResources;
  /** How long clients of the model may write rows directly with a grant. */
  readonly grantedForMs: number;
  /** What the model places in an account. */
  readonly placed: readonly PlacedLayer[];
}

interface Found {
  readonly options: StorageOptions;
  /** The folder of the app. */
  readonly app: string;
}

/** What a command that only uses storage needs besides the settings of storage. */
const UNUSED = {
  TOKEN_ISSUER: 'https://unused.invalid',
  TOKEN_JWKS_URI: 'https://unused.invalid',
  TOKEN_AUDIENCE: '-',
};

/**
 * Returns a function that opens the accounts of the local instance that runs on the data folder; else those that the environment variables of the app name, with
 * the identity that is signed in to the Azure CLI. Without a model, uses that of the app.
 */
export function accountsOpener(model?: Model): (folder: string) => Promise<OpenAccounts> {
  return async (folder) => {
    const { options, app } = (await localAccounts(folder)) ?? (await environmentAccounts(folder));
    const used = model ?? (await loadModel(app));
    return {
      storage: openStorage(options, used.prefix),
      resources: resourcesOf(used.list, Date.now(), used),
      grantedForMs: used.list.some(({ isWrittenByClients }) => isWrittenByClients) ? VALID_FOR_MS : 0,
      placed: layersOf(used),
    };
  };
}

async function localAccounts(folder: string): Promise<Found | undefined> {
  const connections = await localConnections(folder);
  return connections && { options: storageOptions(connections.strings), app: connections.app };
}

async function environmentAccounts(folder: string): Promise<Found> {
  const settings = fromEnvironment({ ...UNUSED, ...process.env });
  if ('refusal' in settings)
    throw new Error(
      `No instance is running on the data folder ${folder}, and the environment does not name storage accounts. ${settings.refusal.message}`,
    );
  const { AzureCliCredential } = await import('@azure/identity');
  const credential = new AzureCliCredential();
  const { storage } = settings;
  const options =
    'accounts' in storage
      ? { accounts: storage.accounts.map((account) => ({ ...account, credential })) }
      : { ...storage, credential };
  return { options, app: '.' };
}

/** Connection strings of the emulator. */
export async function localConnections(folder: string) {
  const instance = await readInstance(folder);
  if (!instance) return undefined;
  const { storageKey } = await readSecrets(folder);
  const first = createEmulatorAccount(storageKey);
  const strings = Array.from({ length: instance.accounts }, (_, number) => {
    const account = createEmulatorAccount(storageKey, number);
    const at = (url: string) => url.replace(`/${first.name}`, `/${account.name}`);
    const { tables, queues, blobs } = instance;
    return formatConnectionString(account, { tables: at(tables), queues: at(queues), blobs: at(blobs) });
  });
  return { strings: strings as [string, ...string[]], app: instance.app };
}
