import { randomUUID } from 'node:crypto';
import { createMemoryStorage, type MemoryStorage } from '../lib/testing/index.ts';
import { createQueueWorker } from '../local/walk/queue-worker.ts';
import { apiCalls } from './kit/api.ts';
import { baseValues } from './kit/base.ts';
import type { LinkedModel } from './kit/define.ts';
import { type Engine, engineCore, engineReconcile } from './kit/engine.ts';
import { operationsBackup, operationsModel } from './kit/operations.ts';
import { type KeyRing, type Storage, storageAccounts, storageRows, storageTables } from './kit/storage.ts';

/** Data keys are kept as they are. */
export const PLAIN_KEYS: KeyRing = {
  wrap: async (dataKey) => ({ keyId: 'memory', wrapped: dataKey }),
  unwrap: async (_, wrapped) => wrapped,
  currentKeyId: async () => 'memory',
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

const named = (memories: readonly MemoryStorage[]) =>
  memories.map((one, index) => ({ ...one, name: ['first', 'second', 'third'][index] ?? '' }));

interface Log {
  warn(text: string): void;
  error(text: string): void;
}

/** Every row of the app, as text, by table and key. Without those of the engine's own state, and what tells one write from another. */
export async function dump(storage: Storage): Promise<Record<string, string>> {
  const all: Record<string, string> = {};
  for (const table of await storageTables.listTables(storage, '')) {
    if (table === 'system' || table === 'poison') continue;
    let after: { partition: string; row: string } | undefined;
    do {
      const { rows, more } = await storageRows.scanTable(storage, { table, after, limit: 1_000, isTyped: true });
      for (const { partition, row, properties } of rows) {
        const { WriteId: _, Writers: __, TouchedBy: ___, ...rest } = properties;
        all[`${table} ${partition} ${row}`] = JSON.stringify(rest);
      }
      after = more ? rows.at(-1) : undefined;
    } while (after);
  }
  return all;
}

/** The rows of all tables, without what differs between two creates of the same values. */
export async function comparableRows(
  { storage }: { readonly storage: Storage },
  { list }: Pick<LinkedModel, 'list'>,
): Promise<object> {
  const encrypted = list.flatMap((entity) => entity.encrypted);
  const rows = Object.entries(await dump(storage)).map(([key, text]) => {
    const { Incarnation: _, FurtherRows: listed = '', ...row } = JSON.parse(text);
    return [key, { ...baseValues.omit(row, encrypted), further: listed.replace(/:[^,]+/g, '') }] as const;
  });
  return Object.fromEntries(rows);
}

export interface TargetOptions {
  readonly prefix?: string;
  /** The number of accounts. Without it, the account of the app with another prefix. */
  readonly accounts?: number;
  readonly model?: LinkedModel;
  readonly keys?: KeyRing;
}

/** An app with a backup, each in an account in memory, whose clock stands until a test moves it. */
export async function openBackedUp(
  model: LinkedModel,
  { keys = PLAIN_KEYS, accounts: count = 1 }: { readonly keys?: KeyRing; readonly accounts?: number } = {},
) {
  let time = Math.ceil(Date.now() / SECOND_MS) * SECOND_MS;
  const now = () => time;
  const entities = model.list;
  const create = (account: string) => createMemoryStorage({ now, account });
  const memory = create('app');
  const backupMemory = create('backup');
  const backup = storageAccounts.openStorage({ accounts: [{ ...backupMemory, name: 'backup' }] });
  const further = Array.from({ length: count - 1 }, (_, index) => create(`app${index + 2}`));
  const plain = storageAccounts.openStorage(
    count === 1 ? memory : { accounts: named([memory, ...further]) },
    model.prefix,
  );
  const resources = operationsModel.resourcesOf(entities, now(), model);
  const journal = operationsBackup.createJournal({ backup, storage: plain }, entities);
  const storage: Storage = { ...plain, backup, journal };
  await storageTables.provision(storage, { ...resources, containers: [...resources.containers, 'backup'] });
  const timing = engineCore.TIMING;
  const engine = engineCore.createEngine(storage, { now, keys, timing });
  const advance = (milliseconds: number) => {
    time += milliseconds;
  };
  /** Handles all messages, hidden ones as if their time had passed. */
  const settler = (of: Engine, list: LinkedModel['list'], log: Log) => {
    const worker = createQueueWorker({ engine: of, entities: list, log }, { lastLogged: () => '' });
    const count = async () => {
      const queues = engineReconcile.listParts(of).map((queue) => of.storage.queue(queue).getProperties());
      return (await Promise.all(queues)).reduce(
        (sum, { approximateMessagesCount = 0 }) => sum + approximateMessagesCount,
        0,
      );
    };
    return async () => {
      while ((await worker.handleVisible()) > 0 || (await count()) > 0) advance(MINUTE_MS);
    };
  };
  const snapshot = async () => {
    const report = await operationsBackup.takeSnapshot(engine, entities, { days: 35 });
    // A snapshot ends with the second.
    advance(2 * SECOND_MS);
    return report;
  };
  const openTarget = async ({
    prefix = `r${randomUUID().slice(0, 6)}`,
    accounts = 0,
    ...given
  }: TargetOptions = {}) => {
    const memories: MemoryStorage[] = accounts === 0 ? [memory] : [];
    for (let number = 0; number < accounts; number += 1) memories.push(create(`target${number}`));
    const [only] = memories;
    const target = storageAccounts.openStorage(
      memories.length === 1 && only ? only : { accounts: named(memories) },
      prefix,
    );
    const used = given.model ?? model;
    const at = engineCore.createEngine(target, {
      now,
      keys: given.keys ?? keys,
      timing,
      rekey: operationsModel.createRekey(used.list),
    });
    const log = { warn: () => undefined, error: () => undefined };
    return { engine: at, storage: target, memories, settle: settler(at, used.list, log) };
  };
  /** As a run of the backup does. */
  const copyBlobs = async () => {
    // The audit log of an hour is copied when it is complete.
    advance(3 * 60 * MINUTE_MS);
    return operationsBackup.copyToBackup(engine, entities, { days: 35 });
  };
  const logged: string[] = [];
  const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };
  return {
    ...{ memory, backupMemory, backup, storage, engine, now, advance, snapshot, copyBlobs, openTarget, logged },
    settle: settler(engine, entities, log),
    /** An instant after everything that was written, and before all that will be. */
    cut() {
      advance(SECOND_MS);
      const at = new Date(now()).toISOString().replace('Z', '0000Z');
      advance(SECOND_MS);
      return at;
    },
    async restore(
      target: { readonly engine: Engine },
      at: string,
      more: Partial<Parameters<typeof operationsBackup.restoreBackup>[2]> & { readonly model?: LinkedModel } = {},
    ) {
      const { model: other = model, ...options } = more;
      return operationsBackup.restoreBackup(target.engine, other, {
        source: { backup, storage },
        at,
        erase: (of, subject) => apiCalls.eraseAll(of, other, subject),
        ...options,
      });
    },
  };
}

export type BackedUp = Awaited<ReturnType<typeof openBackedUp>>;
