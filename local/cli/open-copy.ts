import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { LinkedModel } from '../../lib/define/define-model.ts';
import { createEngine, type Engine } from '../../lib/engine/engine.ts';
import { createJournal } from '../../lib/operations/backup/journal.ts';
import { requireRecorded } from '../../lib/operations/model-guard.ts';
import { createRekey } from '../../lib/operations/rekey.ts';
import { BACKUP_CONNECTION } from '../../lib/settings.ts';
import { BACKUP_ACCOUNT, openStorage } from '../../lib/storage/storage.ts';
import type { Mapping } from '../copy/read-source.ts';
import { importModel } from '../instance/import-model.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { type FoundAccounts, findAccounts } from './open-accounts.ts';
import { openKeys, toAccount } from './open-restore.ts';
import { completeConnection } from './tables-account.ts';

/** The tables of another program, and the app into whose tables they are copied. */
export interface OpenCopy {
  /** An engine of each, with the shapes of its model. */
  readonly from: Engine;
  readonly to: Engine;
  readonly source: Pick<LinkedModel, 'list'>;
  readonly model: Pick<LinkedModel, 'list'>;
  readonly maps: Maps;
  readonly mapsBack: Maps;
}

type Maps = Readonly<Record<string, Mapping>>;

interface Opening {
  readonly data: string;
  /** A connection string, an address or the name of an account. */
  readonly from: string;
  readonly source: string;
}

const Mappings = z
  .record(
    z.string(),
    z.custom<Mapping>((value) => typeof value === 'function'),
  )
  .default({});

/** Returns a function that opens what a copy needs, as `accountsOpener` opens accounts. */
export function copyOpener(own?: LocalApp): (opening: Opening) => Promise<OpenCopy> {
  return async ({ data, from, source: file }) => {
    const source = await importModel(resolve(file));
    if (!source)
      throw new Error(
        `The file ${file} exports no "model". Export what defineModel returns: export const model = defineModel({ … }).`,
      );
    const exported: Readonly<Record<string, unknown>> = await import(pathToFileURL(resolve(file)).href);
    const { data: maps } = Mappings.safeParse(exported.map);
    const { data: mapsBack } = Mappings.safeParse(exported.mapBack);
    if (!maps || !mapsBack) throw new Error(`"map" and "mapBack" of ${file} must have a function for each entity.`);
    const found = await findAccounts(data, own);
    const model = await found.loadModel();
    const there = toAccount(
      /^[a-z0-9]{3,24}$/.test(from) ? `https://${from}.table.core.windows.net` : completeConnection(from),
      (await found.credential()) ?? (await cliCredential(from)),
    );
    return {
      from: createEngine(withShapes(openStorage(there, source.prefix), source.list)),
      to: await openEngine(found, model, data),
      ...{ source, model, maps, mapsBack },
    };
  };
}

/** The engine of an app, for a command that writes its rows without the API. */
export async function openEngine(found: FoundAccounts, model: LinkedModel, data: string): Promise<Engine> {
  const plain = openStorage(found.options, model.prefix);
  // Without it, changes would be in no backup until its next snapshot.
  if (model.backup && !found.backup) throw new Error(`The model declares a backup: set ${BACKUP_CONNECTION}.`);
  const backup =
    model.backup && found.backup
      ? openStorage({ accounts: [{ ...found.backup, name: BACKUP_ACCOUNT }] }, model.prefix)
      : undefined;
  const storage = backup ? { ...plain, backup, journal: createJournal({ backup, storage: plain }, model.list) } : plain;
  const { rulesMaxAge, queueParts } = model;
  const options = { keys: await openKeys(found, data), rulesMaxAge, queueParts, rekey: createRekey(model.list) };
  const engine = createEngine(withShapes(storage, model.list), options);
  await requireRecorded(engine, model.list);
  return engine;
}

/** An app on this machine has no identity of its own. */
async function cliCredential(from: string) {
  if (/[;=]/.test(from)) return undefined;
  const { AzureCliCredential } = await import('@azure/identity');
  return new AzureCliCredential();
}
