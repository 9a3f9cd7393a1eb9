import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { LinkedModel } from '../../lib/define/define-model.ts';
import { createEngine, type Engine } from '../../lib/engine/engine.ts';
import { BACKUP_CONNECTION } from '../../lib/settings.ts';
import { BACKUP_ACCOUNT, openStorage, type Storage } from '../../lib/storage/storage.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { findAccounts } from './open-accounts.ts';

/** An app with its backup. */
export interface OpenBackup {
  readonly engine: Engine;
  readonly backup: Storage;
  readonly model: Pick<LinkedModel, 'list'>;
  readonly days: number;
}

/** Returns a function that opens the backup of an app, as `accountsOpener` opens accounts. */
export function backupOpener(own?: LocalApp): (folder: string) => Promise<OpenBackup> {
  return async (folder) => {
    const found = await findAccounts(folder, own);
    const used = await found.loadModel();
    if (!used.backup) throw new Error('The model declares no backup. Add backup: { days: 35 } to defineModel.');
    if (!found.backup)
      throw new Error(`Where is the backup? Set ${BACKUP_CONNECTION} to the connection string of its storage account.`);
    const backup = openStorage({ accounts: [{ ...found.backup, name: BACKUP_ACCOUNT }] }, used.prefix);
    const storage = { ...withShapes(openStorage(found.options, used.prefix), used.list), backup };
    return { engine: createEngine(storage), backup, model: used, days: used.backup.days };
  };
}
