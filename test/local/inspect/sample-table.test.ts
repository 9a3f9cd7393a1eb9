import { expect, test } from 'vitest';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { sampleTable } from '../../../local/inspect/sample-table.ts';
import { storageAccounts, storageRows, storageTables } from '../../kit/storage.ts';

const table = 'things';

/** An account in memory with rows of these keys. */
async function openWith(keys: readonly (readonly [partition: string, row: string])[]) {
  const storage = storageAccounts.openStorage(createMemoryStorage());
  await storageTables.provision(storage, { tables: [table], queues: [], containers: [] });
  for (const [partition, ofPartition] of Map.groupBy(keys, ([of]) => of))
    for (let from = 0; from < ofPartition.length; from += 100) {
      const actions = ofPartition
        .slice(from, from + 100)
        .map(([, row]) => ({ kind: 'insert', row, properties: {} }) as const);
      await storageRows.submit(storage, { table, partition, actions });
    }
  return storage;
}

const padded = (number: number) => String(number).padStart(6, '0');
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

test('reads a small table as a whole', async () => {
  const storage = await openWith(numbers(30).map((number) => [`p${number % 7}`, padded(number)]));
  const sample = await sampleTable(storage, { table, rows: 100, reads: 50 });
  expect([sample.rows.length, sample.isWhole, sample.transactions]).toEqual([30, true, 1]);
  const empty = await openWith([]);
  expect(await sampleTable(empty, { table, rows: 100, reads: 50 })).toMatchObject({ rows: [], isWhole: true });
});

test('reads rows from all over the keys, within its bounds', async () => {
  const storage = await openWith([
    ...numbers(60).map((number) => [`email_${padded(number)}`, 'index'] as const),
    ...numbers(400).map((number) => ['one', padded(number)] as const),
    ...numbers(60).map((number) => [`user_${padded(number)}`, 'profile'] as const),
  ]);
  const read: number[] = [];
  const sample = await sampleTable(storage, { table, rows: 120, reads: 40, onRead: (rows) => read.push(rows) });
  expect(sample.isWhole).toBe(false);
  expect(sample.rows.length).toBeLessThanOrEqual(120);
  expect(sample.rows.length).toBeGreaterThan(80);
  expect(sample.transactions).toBeLessThanOrEqual(40);
  expect(read.length).toBe(sample.transactions);
  const of = (prefix: string) =>
    sample.rows.filter(({ partition }) => partition.startsWith(prefix)).map(({ partition, row }) => partition + row);
  for (const prefix of ['email_', 'one', 'user_']) expect(of(prefix).length, prefix).toBeGreaterThanOrEqual(3);
  expect(of('one').some((key) => key > 'one000200')).toBe(true);
  expect(sample.rows.map(({ partition, row }) => partition + row)).toEqual(
    sample.rows.map(({ partition, row }) => partition + row).sort(),
  );
  const few = await sampleTable(storage, { table, rows: 80, reads: 3 });
  expect(few.transactions).toBe(3);
});

test('reads every row of a table that is hardly larger than the first read', async () => {
  const storage = await openWith(numbers(50).map((number) => [`p${padded(number * 37)}`, 'a']));
  const sample = await sampleTable(storage, { table, rows: 70, reads: 100 });
  expect([sample.rows.length, sample.isWhole]).toEqual([50, true]);
});

test('stops when it is told to', async () => {
  const storage = await openWith(numbers(20).map((number) => [padded(number), 'a']));
  const sample = await sampleTable(storage, { table, rows: 20, reads: 100, signal: AbortSignal.abort() });
  expect([sample.transactions, sample.isWhole]).toEqual([1, false]);
});
