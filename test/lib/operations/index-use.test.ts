import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
} from '../../../lib/define.ts';
import { readIndexUse, rememberIndexReads } from '../../../lib/operations/index-use.ts';
import { apiCalls } from '../../kit/api.ts';
import { engineCore } from '../../kit/engine.ts';
import type { Internal } from '../../kit/internal.ts';
import { operationsModel } from '../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const schema = z.object({ city: z.string(), id: z.string(), name: z.string(), plate: z.string(), size: z.int32() });
const cars = defineEntity('cars', {
  schema,
  table: 'cars',
  key: { partition: '{city}', row: 'car_{id}' },
  indexes: {
    plate: interPartitionIndex({ table: 'carsbyplate', partition: '{plate#}', row: '{plate}', unique: true }),
    everywhere: interPartitionIndex({ table: 'carsbyname', partition: '{name}', row: '{city}_{id}' }),
    name: intraPartitionIndex({ row: 'name_{name}_{id}' }),
    size: indexEntity({ row: 'size_{size:3}', holds: '{id}' }),
  },
  totals: { perCity: total({ table: 'carspercity', partition: '{city}', row: 'all', sum: ['size'] }) },
  access: { read: ['reader'], write: ['reader'] },
});
const model = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [cars] });

const DAY_MS = 86_400_000;
let now = Date.parse('2026-11-20T12:00:00Z');
const connectionString = testStorage(import.meta.url);

/** A process of the app. */
function start() {
  const storage = storageAccounts.openStorage({ connectionString });
  const engine = engineCore.createEngine(storage, { now: () => now });
  const source = { engine: async () => engine, record: (_: string, write: () => Promise<unknown>) => write() };
  return {
    storage,
    engine,
    store: apiCalls.createStore<typeof model.entities>(model.list, source as Internal['StoreSource']),
  };
}

const useOf = async (process: ReturnType<typeof start>) =>
  Object.fromEntries((await readIndexUse(process.engine, model.list)).map((one) => [one.index, one]));

beforeAll(async () => {
  const { storage } = start();
  await storageTables.provision(storage, operationsModel.resourcesOf(model.list, now));
});

test('counts each way to read, remembers the day for all processes, and reports what nobody reads after a month', async () => {
  const one = start();
  const { cars: stored } = one.store;
  await stored.create({ city: 'Oslo', id: '1', name: 'Kangoo', plate: 'A1', size: 4 });
  for (const { reads, lastReadOn, isUnread } of Object.values(await useOf(one)))
    expect({ reads, lastReadOn, isUnread }).toEqual({ reads: 0, lastReadOn: undefined, isUnread: false });

  await stored.by.plate({ plate: 'A1' });
  await Array.fromAsync(stored.by.name({ city: 'Oslo', name: 'Kangoo' }));
  await Array.fromAsync(stored.by.size({ city: 'Oslo', size: 4 }));
  await Array.fromAsync(stored.by.size.range({ city: 'Oslo' }));
  await stored.totals.perCity.get({ city: 'Oslo' });
  const used = await useOf(one);
  expect(Object.values(used).map(({ index, reads }) => [index, reads])).toEqual([
    ['plate', 1],
    ['everywhere', 0],
    ['name', 1],
    ['size', 2],
    ['perCity', 1],
  ]);
  expect(used.plate).toMatchObject({ kind: 'index', neededFor: ['unique values'] });
  expect(used.everywhere?.transactions).toBeGreaterThan(0);
  expect(used.name?.transactions).toBeUndefined();
  expect(used.size?.kind).toBe('list');
  expect(used.perCity).toMatchObject({ kind: 'totals', lastReadOn: '2026-11-20' });

  // A range query, and one write for all indexes of the entity.
  expect(await transactionsOf(() => rememberIndexReads(one.engine, model.list))).toBe(2);
  await Array.fromAsync(stored.by.name({ city: 'Oslo', name: 'Kangoo' }));
  expect(await transactionsOf(() => rememberIndexReads(one.engine, model.list))).toBe(0);
  const other = start();
  expect(await transactionsOf(() => rememberIndexReads(other.engine, model.list))).toBe(1);
  expect((await useOf(other)).name).toMatchObject({ reads: 0, countedSince: '2026-11-20', lastReadOn: '2026-11-20' });

  now += 30 * DAY_MS;
  await Array.fromAsync(other.store.cars.by.size({ city: 'Oslo', size: 4 }));
  expect(await transactionsOf(() => rememberIndexReads(other.engine, model.list))).toBe(1);
  expect(Object.values(await useOf(start())).filter(({ isUnread }) => isUnread)).toEqual([]);
  now += 6 * DAY_MS;
  const late = await useOf(start());
  expect(late.size?.lastReadOn).toBe('2026-12-20');
  const unread = Object.values(late).filter(({ isUnread }) => isUnread);
  // The index of plates keeps them unique.
  expect(unread.map(({ index }) => index)).toEqual(['everywhere', 'name', 'perCity']);
});

async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
  return storageAccounts.measureCost(async (cost) => {
    await work();
    return cost.transactions;
  });
}
