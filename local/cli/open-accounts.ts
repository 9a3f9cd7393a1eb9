import { join } from 'node:path';
import type { TokenCredential } from '@azure/identity';
import { VALID_FOR_MS } from '../../lib/access/grant.ts';
import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { Model } from '../../lib/define/define-model.ts';
import { layersOf, type PlacedLayer } from '../../lib/define/places/placement.ts';
import { type AppResources, resourcesOf } from '../../lib/operations/resources.ts';
import { fromEnvironment } from '../../lib/settings.ts';
import type { KeyRingOptions } from '../../lib/storage/lazy-key-ring.ts';
import { type AccountOptions, openStorage, type Storage, type StorageOptions } from '../../lib/storage/storage.ts';
import { createEmulatorAccount, formatConnectionString } from '../instance/azurite.ts';
import { readInstance } from '../instance/instance.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { readSecrets } from '../instance/secrets.ts';
import { BACKUP_NUMBER, storageOptions } from '../instance/storage-accounts.ts';
import { modelOf } from './stored-entity.ts';

export interface OpenAccounts {
  readonly storage: Storage;
  readonly resources: AppResources;
  /** How long clients of the model may write rows directly with a grant. */
  readonly grantedForMs: number;
  /** What the model places in an account. */
  readonly placed: readonly PlacedLayer[];
}

/** The accounts of an app, and what its settings say beside them. */
export interface FoundAccounts {
  readonly options: StorageOptions;
  /** The model of the app. */
  loadModel(): Promise<Model>;
  readonly backup?: AccountOptions | undefined;
  readonly keys?: KeyRingOptions | undefined;
  /** Of whoever is signed in to the Azure CLI. Undefined for the emulator. */
  credential(): Promise<TokenCredential | undefined>;
}

/** What a command that only uses storage needs besides the settings of storage. */
const UNUSED = {
  TOKEN_ISSUER: 'https://unused.invalid',
  TOKEN_JWKS_URI: 'https://unused.invalid',
  TOKEN_AUDIENCE: '-',
};

/**
 * Returns a function that opens the accounts of the local instance that runs on the data folder; else those that the environment variables of the app name, with
 * the identity that is signed in to the Azure CLI. `own` is the app of a command that has one.
 */
export function accountsOpener(own?: LocalApp): (folder: string) => Promise<OpenAccounts> {
  return async (folder) => {
    const found = await findAccounts(folder, own);
    const { options } = found;
    const used = await found.loadModel();
    return {
      storage: withShapes(openStorage(options, used.prefix), used.list),
      resources: resourcesOf(used.list, Date.now(), used),
      grantedForMs: used.list.some(({ isWrittenByClients }) => isWrittenByClients) ? VALID_FOR_MS : 0,
      placed: layersOf(used),
    };
  };
}

/** The accounts of the local instance that runs on the data folder; else those that the environment variables of the app name, by default of the own one. */
export async function findAccounts(folder: string, own?: LocalApp): Promise<FoundAccounts> {
  return (await localAccounts(folder, own)) ?? (await environmentAccounts(folder, own));
}

async function localAccounts(folder: string, own: LocalApp | undefined): Promise<FoundAccounts | undefined> {
  const connections = await localConnections(folder);
  if (!connections) return undefined;
  return {
    options: storageOptions(connections.strings),
    loadModel: () => modelOf(connections.app, own),
    backup: { connectionString: process.env.BackupStorage ?? connections.backup },
    keys: { file: join(folder, 'keys.json') },
    credential: async () => undefined,
  };
}

async function environmentAccounts(folder: string, own: LocalApp | undefined): Promise<FoundAccounts> {
  const settings = fromEnvironment({ ...UNUSED, ...process.env });
  if ('refusal' in settings)
    throw new Error(
      `No instance is running on the data folder ${folder}, and the environment does not name storage accounts. ${settings.refusal.message}`,
    );
  const { AzureCliCredential } = await import('@azure/identity');
  const credential = new AzureCliCredential();
  const { storage, backup, keys } = settings;
  const options =
    'accounts' in storage
      ? { accounts: storage.accounts.map((account) => ({ ...account, credential })) }
      : { ...storage, credential };
  return {
    options,
    loadModel: () => modelOf(own?.folder ?? '.', own),
    backup: backup && { ...backup, credential },
    keys,
    credential: async () => credential,
  };
}

/** Connection strings of the emulator. */
export async function localConnections(folder: string) {
  const instance = await readInstance(folder);
  if (!instance) return undefined;
  const { storageKey } = await readSecrets(folder);
  const first = createEmulatorAccount(storageKey);
  const connectionOf = (number: number) => {
    const account = createEmulatorAccount(storageKey, number);
    const at = (url: string) => url.replace(`/${first.name}`, `/${account.name}`);
    const { tables, queues, blobs } = instance;
    return formatConnectionString(account, { tables: at(tables), queues: at(queues), blobs: at(blobs) });
  };
  const strings = Array.from({ length: instance.accounts }, (_, number) => connectionOf(number));
  return { strings: strings as [string, ...string[]], backup: connectionOf(BACKUP_NUMBER), app: instance.app };
}
