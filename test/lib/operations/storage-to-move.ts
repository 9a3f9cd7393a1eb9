import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { baseValues } from '../../kit/base.ts';
import { type MoveTiming, operationsMove } from '../../kit/operations.ts';
import { type Action, type Storage, storageRows, storageSlots, storageTables } from '../../kit/storage.ts';
import { accountNamed, createAccounts, RESOURCES, type Several, TABLE } from '../storage/several-accounts.ts';

/** Nothing is late in memory, and each process of these tests reads the map when it begins. */
export const QUICK: MoveTiming = {
  ...operationsMove.MOVE_TIMING,
  leaseMs: 200,
  lateMs: 100,
  holdMs: 1_000,
  keepMs: 0,
};
export const quick = { timing: QUICK, resources: RESOURCES };

/** The name of a blob that the engine could have written; without a slot, one of an earlier release. */
export const blobIn = (slot: string, number: number, table = TABLE) =>
  `${slot && `${slot}/`}${table}/${'a'.repeat(22)}/text/00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

export const at = (partition: string) => ({ table: TABLE, partition });
export const write = (storage: Storage, partition: string, ...actions: Action[]) =>
  storageRows.submit(storage, { ...at(partition), actions });
export const put = (storage: Storage, partition: string, row: string, value: unknown) =>
  write(storage, partition, { kind: 'upsert', row, properties: { EntityType: 'thing', Value: value } });

/** Two accounts of which the first has all slots and some partitions. */
export async function storageToMove(partitions = 12, names = ['first', 'second'], clocksMs: readonly number[] = []) {
  const created = createAccounts(names, clocksMs);
  const alone = created.open(1);
  await storageTables.provision(alone, RESOURCES);
  const keys = Array.from({ length: partitions }, (_, index) => `p${index}`);
  for (const key of keys) await put(alone, key, 'a', key);
  const storage = created.open() as Several;
  await storageTables.provision(storage, RESOURCES);
  await storageRows.scanTable(storage, { table: TABLE, limit: 1 });
  return { ...created, storage, keys, slots: [...new Set(keys.map(storageSlots.slotOf))] };
}

/** The rows of a table as a new process reads them. */
export async function contentsOf(storage: Storage) {
  const { rows } = await storageRows.scanTable(storage, { table: TABLE, limit: 10_000 });
  return Object.fromEntries(rows.map(({ partition, row, properties }) => [`${partition}/${row}`, properties.Value]));
}

/** All rows of an account, those of moves as well. */
export async function rowsIn(storage: Several, account: string) {
  const rows: string[] = [];
  for await (const { partitionKey, rowKey } of accountNamed(storage, account).table(TABLE).listEntities())
    rows.push(`${partitionKey}/${rowKey}`);
  return rows.sort();
}

/** Writes, deletes and reads rows in each partition until it is ended, and remembers what must be there. */
export function createTraffic(open: () => Storage, keys: readonly string[]) {
  const known = new Map<string, unknown>(keys.map((key) => [`${key}/a`, key]));
  let isOver = false;
  const work = async (key: string) => {
    for (let round = 1; !isOver; round += 1) {
      const storage = open();
      const row = ['a', 'b', 'c'][round % 3] ?? '';
      const isDelete = round % 4 === 3;
      if (isDelete) await put(storage, key, row, 'to be deleted');
      if (isDelete) await write(storage, key, { kind: 'delete', row });
      else await put(storage, key, row, round);
      known.set(`${key}/${row}`, isDelete ? undefined : round);
      const found = await storageRows.readRow(storage, { ...at(key), row });
      expect(found?.properties.Value, `${key}/${row} in round ${round}`).toBe(known.get(`${key}/${row}`));
      await sleep(20);
    }
  };
  const running = Promise.all(keys.map(work));
  return {
    async end() {
      isOver = true;
      await running;
    },
    /** The rows that must be there. */
    rows: () => Object.fromEntries([...known].filter(([, value]) => value !== undefined)),
  };
}

/** Continues with other movers. A machine that is busy elsewhere may not renew the hold of one in time. */
export async function resume(open: () => Storage, attempts = 10): Promise<unknown> {
  return operationsMove.resumeMoves(open(), quick).catch((error: unknown) => {
    if (attempts === 0 || !baseValues.hasCode(error, 'busy')) throw error;
    return resume(open, attempts - 1);
  });
}
