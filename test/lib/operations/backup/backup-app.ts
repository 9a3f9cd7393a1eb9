import { afterEach, beforeEach, vi } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../../lib/define.ts';
import { createRowkey } from '../../../../lib/index.ts';
import { createMemoryStorage } from '../../../../lib/testing/index.ts';
import { apiCalls } from '../../../kit/api.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageBlobs, storageJournal, storageRows, storageTables } from '../../../kit/storage.ts';
import { log } from '../../../silent-log.ts';

const personId = z.string().regex(/^\d$/);
const access = { read: ['clerk'], write: ['clerk'] } as const;
/** One row without anything beside it: without a backup it is written and deleted unread. */
const notes = defineEntity('notes', {
  schema: z.object({ pad: z.string(), noteId: z.string(), text: z.string(), weight: z.number().optional() }),
  table: 'notes',
  key: { partition: '{pad}', row: '{noteId}' },
  ofUser: { pad: 'delete' },
  access,
});
/** With an index in another partition, which a backup leaves out, with copies, lists, a text in a blob and a file. */
const people = defineEntity('people', {
  schema: z.object({
    team: z.string(),
    personId,
    email: z.string(),
    town: z.string(),
    story: z.string().max(200_000).optional(),
  }),
  table: 'people',
  key: { partition: '{team}', row: 'id_{personId}' },
  indexes: {
    email: interPartitionIndex({
      table: 'peoplebyemail',
      partition: '{email#}',
      row: '{email}',
      unique: true,
      copies: 'keys',
    }),
    town: intraPartitionIndex({ row: 'town_{town}_{personId}', copies: ['email'] }),
    towns: indexEntity({ row: 'in_{town}', holds: '{personId}' }),
  },
  large: ['story'],
  attachments: { photo: { container: 'faces', maxBytes: 1_000_000, types: ['image/png'] } },
  access,
});
const pets = defineEntity('pets', {
  schema: z.object({ team: z.string(), personId, petName: z.string(), legs: z.int32() }),
  table: 'people',
  key: { partition: '{team}', row: 'id_{personId}_{petName}' },
  childOf: people,
  access,
});
export const model = defineModel({
  roles: ['clerk', 'operator'],
  operatorRole: 'operator',
  entities: [notes, people, pets],
  backup: { days: 7, roles: ['clerk'] },
});

/** An app with a backup, on two accounts in memory. */
/** With clocks that only `passTime` and requests move, so that each request takes as long on any machine: the time of a delete is known only to about that. */
export function useStillClocks(): void {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }));
  afterEach(() => void vi.useRealTimers());
}
export const passTime = () => void vi.advanceTimersByTime(2_000);
const REQUEST_MS = 10;

export async function openBackedUp() {
  const memory = createMemoryStorage();
  const backupMemory = createMemoryStorage({ account: 'backup' });
  const rowkey = createRowkey({
    model,
    storage: memory,
    backup: backupMemory,
    auth: { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' },
  });
  await rowkey.provision();
  const engine = await rowkey.runtime.readyEngine(log);
  const { storage } = engine;
  if (!storage.backup) throw new Error('The app has no backup.');
  memory.intercept = (_, send) => {
    if (vi.isFakeTimers()) vi.advanceTimersByTime(REQUEST_MS);
    return send();
  };
  const source = { backup: storage.backup, storage, days: 7 };
  return { rowkey, engine, storage, source, store: rowkey.store, memory, backupMemory };
}

export type BackedUp = Awaited<ReturnType<typeof openBackedUp>>;

/** As a snapshot of an app that has stored nothing. */
export async function writeEmptySnapshot({ source }: BackedUp): Promise<void> {
  const at = storageJournal.toTime(Date.now() - 60_000) ?? '';
  const manifest = { format: 'rowkey-backup', formatVersion: 1, id: at, begunAt: at, finishedAt: at };
  const text = JSON.stringify({ ...manifest, tables: {}, blobs: {}, entities: {} });
  const address = { container: storageJournal.BACKUP_CONTAINER, name: operationsBackup.manifestName(at) };
  await storageBlobs.writeBlob(source.backup, address, Buffer.from(text), { type: 'application/json' });
}

/** All rows of the tables that a backup has, as storage has them. */
export async function storedRows({ storage }: BackedUp) {
  const hasTable = operationsBackup.tablesInBackup(model.list);
  const tables = (await storageTables.listTables(storage, '')).filter((table) => hasTable(table));
  const found = tables.map(async (table) => {
    const { rows } = await storageRows.scanTable(storage, { table, limit: Number.POSITIVE_INFINITY });
    return rows.map(({ partition, row, etag, properties }) => ({
      table,
      partition,
      row,
      time: storageJournal.timeOf(etag),
      properties,
    }));
  });
  return (await Promise.all(found)).flat();
}

/** The rows that the backup has at an instant, with numbers as the SDK reads them. */
export async function restoredRows({ source }: BackedUp, at: string) {
  const { rows } = await operationsBackup.readState(source, at);
  const plain = (value: unknown) => {
    const { type, value: text } = Object(value);
    return type === 'Double' ? Number(text) : (text ?? value);
  };
  return (await Array.fromAsync(rows)).map(({ properties, ...row }) => ({
    ...row,
    properties: Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, plain(value)])),
  }));
}

export const laterThanNow = () => storageJournal.toTime(Date.now() + 1) ?? '';

export function entityNamed(name: string) {
  const found = model.list.find((entity) => entity.name === name);
  if (!found) throw new Error(`The model has no ${name}.`);
  return found;
}

/** The values of an entity as an engine reads them. */
export async function valuesIn(engine: BackedUp['engine'], name: string, key: Record<string, string>) {
  const view = { engine, caller: undefined, isLastAttempt: true };
  return (await apiCalls.getEntity(entityNamed(name)).run(view, { key })).values;
}
