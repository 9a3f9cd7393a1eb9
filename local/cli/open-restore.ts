import { join } from 'node:path';
import type { TokenCredential } from '@azure/identity';
import { eraseAll } from '../../lib/api/user-data.ts';
import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { LinkedModel } from '../../lib/define/define-model.ts';
import { createEngine, type Engine } from '../../lib/engine/engine.ts';
import type { Erased } from '../../lib/operations/backup/erase-again.ts';
import type { BackupSource } from '../../lib/operations/backup/read-backup.ts';
import { createRekey } from '../../lib/operations/rekey.ts';
import { BACKUP_CONNECTION } from '../../lib/settings.ts';
import type { KeyRing } from '../../lib/storage/key-ring.ts';
import { createKeyVaultKeyRing } from '../../lib/storage/key-vault-key-ring.ts';
import { createLazyKeyRing } from '../../lib/storage/lazy-key-ring.ts';
import { PREFIX } from '../../lib/storage/resource-names.ts';
import {
  type AccountOptions,
  BACKUP_ACCOUNT,
  openStorage,
  type Storage,
  type StorageOptions,
} from '../../lib/storage/storage.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { accountNames } from '../instance/storage-accounts.ts';
import { type FoundAccounts, findAccounts } from './open-accounts.ts';

/** A backup, and the places to which it can be restored. */
export interface OpenRestore {
  readonly model: LinkedModel;
  readonly source: BackupSource;
  /** Opens a prefix of the accounts of the app, or other accounts. */
  openTarget(to: readonly string[]): Promise<Engine>;
  erase(engine: Engine, subject: string): Promise<Erased>;
}

/** The retention of a backup that the model does not declare any more. */
const DAYS = 35;

interface Opening {
  readonly data: string;
  readonly backup?: string | undefined;
}

/** Returns a function that opens what a restore needs, as `accountsOpener` opens accounts. */
export function restoreOpener(own?: LocalApp): (opening: Opening) => Promise<OpenRestore> {
  return async ({ data, backup: given }) => {
    const found = await findAccounts(data, own);
    const used = await found.loadModel();
    const at = given === undefined ? found.backup : toAccount(given, await found.credential());
    if (!at) throw new Error(`Where is the backup? Set ${BACKUP_CONNECTION}, or name its storage account by --backup.`);
    const backup = openStorage({ accounts: [{ ...at, name: BACKUP_ACCOUNT }] }, used.prefix);
    const storage = withShapes(openStorage(found.options, used.prefix), used.list);
    const keys = await openKeys(found, data);
    return {
      model: used,
      source: { backup, days: used.backup?.days ?? DAYS, ...((await isThere(storage)) ? { storage } : {}) },
      erase: (engine, subject) => eraseAll(engine, used, subject),
      async openTarget(to) {
        const { options, prefix } = parsePlace(to, found.options, await found.credential());
        const target = withShapes(openStorage(options, prefix ?? used.prefix), used.list, { isRestored: true });
        const { rulesMaxAge, queueParts } = used;
        return createEngine(target, { keys, rulesMaxAge, queueParts, rekey: createRekey(used.list) });
      },
    };
  };
}

/** False if the accounts of the app are gone. */
async function isThere(storage: Storage): Promise<boolean> {
  const accounts = storage.accounts?.list ?? [storage];
  const found = await Promise.all(
    accounts.map((account) =>
      account
        .container('backup')
        .exists()
        .catch(() => false),
    ),
  );
  return found.every((exists) => exists);
}

export async function openKeys({ keys, credential }: FoundAccounts, data: string): Promise<KeyRing> {
  if (keys && 'keyUri' in keys) {
    const used = await credential();
    if (used) return createKeyVaultKeyRing({ keyUri: keys.keyUri, credential: used });
  }
  return createLazyKeyRing(() => keys ?? { file: join(data, 'keys.json') });
}

/** The name of an account, and the beginning of a connection. */
const NAMED =
  /^([A-Za-z]\w*)=(?=https:|UseDevelopmentStorage=|DefaultEndpointsProtocol=|\w+Endpoint=|AccountName=)(.+)$/s;

function parsePlace(
  to: readonly string[],
  own: StorageOptions,
  credential: TokenCredential | undefined,
): { readonly options: StorageOptions; readonly prefix?: string } {
  const [only = ''] = to;
  if (to.length === 1 && PREFIX.test(only)) return { options: own, prefix: only };
  const accounts = to.map((text, index) => {
    const [, name = accountNames[index] ?? '', connection = text] = NAMED.exec(text) ?? [];
    return { ...toAccount(connection, credential), name };
  });
  return { options: { accounts } };
}

/** An account by its connection string, or by the address of its tables, such as `https://name.table.core.windows.net`. */
export function toAccount(connection: string, credential: TokenCredential | undefined): AccountOptions {
  if (!URL.canParse(connection)) {
    if (/[;=]/.test(connection)) return { connectionString: connection };
    throw new Error(
      `"${connection}" is no place; accepted are a prefix of lower-case letters and digits, connection strings, and addresses such as https://name.table.core.windows.net.`,
    );
  }
  const at = (service: string) => connection.replace(/\.(table|queue|blob)\./, `.${service}.`);
  return { tables: at('table'), queues: at('queue'), blobs: at('blob'), credential };
}
