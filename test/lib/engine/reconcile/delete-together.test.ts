import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { allEnded, deleteEntries, deleteTogether } from '../../../../lib/engine/reconcile/delete-together.ts';
import { RowkeyError } from '../../../../lib/index.ts';
import { costOf } from '../../../cost-of.ts';
import { type Row, storageAccounts, storageRows, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
const hold = { keep: async () => new AbortController().signal };
beforeAll(() => storageTables.createTable(storage, 'entries'));

const at = (partition: string, row: string) => ({ index: 'name', table: 'entries', partition, row });
async function insert(partition: string, row: string, of = row): Promise<Row> {
  const properties = { SourceRow: of };
  await storageRows.submit(storage, { table: 'entries', partition, actions: [{ kind: 'insert', row, properties }] });
  const found = await storageRows.readRow(storage, at(partition, row));
  if (!found) throw new Error('The row was inserted.');
  return found;
}
const rows = async (partition: string) =>
  (await storageRows.readRange(storage, { table: 'entries', partition, from: '' })).rows.map(({ row }) => row);
const change = ({ table, partition, row, etag }: Row) =>
  storageRows.tryAction(storage, { table, partition }, { kind: 'merge', row, properties: { SourceRow: 'x' }, etag });

test('rows are deleted in a transaction for each partition, and those that have changed are returned', async () => {
  const all = [await insert('a', '1'), await insert('a', '2'), await insert('b', '1'), await insert('c', '1')];
  const [, , third] = all;
  if (third) await change(third);
  const refused: (readonly Row[])[] = [];
  expect(await costOf(async () => refused.push(await deleteTogether(storage, hold, all)))).toBe(3);
  expect(refused.flat()).toEqual([third]);
  expect([await rows('a'), await rows('b'), await rows('c')]).toEqual([[], ['1'], []]);
  expect(await deleteTogether(storage, hold, [])).toEqual([]);
});

test('entries of one partition are deleted together: own ones that did not change, and none that is alone', async () => {
  for (const row of ['1', '2', '3']) await insert('d', row, row === '2' ? 'another' : row);
  await insert('e', '1');
  const left = ['1', '2', '3', '4'].map((row) => ({
    address: { table: 'things', partition: 'one', row },
    indexEntry: at('d', row),
  }));
  const alone = { address: { table: 'things', partition: 'one', row: '1' }, indexEntry: at('e', '1') };
  const isOwn = ({ properties }: Row, { row }: { row: string }) => properties.SourceRow === row;
  const gone = await deleteEntries(storage, hold, { left: [...left, alone], isOwn });
  expect([...gone].map(({ row }) => row)).toEqual(['1', '2', '3', '4']);
  expect([...gone].some(({ partition }) => partition === 'e')).toBe(false);
  expect([await rows('d'), await rows('e')]).toEqual([['2'], ['1']]);
});

test('an entry that changes between its read and its delete is left to be settled by itself', async () => {
  for (const row of ['1', '2']) await insert('f', row);
  const left = ['1', '2'].map((row) => ({
    address: { table: 'things', partition: 'one', row },
    indexEntry: at('f', row),
  }));
  const changing = {
    async keep() {
      const found = await storageRows.readRow(storage, at('f', '1'));
      if (found) await change(found);
      return new AbortController().signal;
    },
  };
  const gone = await deleteEntries(storage, changing, { left, isOwn: () => true });
  expect([...gone]).toEqual([]);
  expect(await rows('f')).toEqual(['1', '2']);
});

test('nothing begins after a failure, what has begun ends first, and an unknown outcome is thrown before others', async () => {
  const ended: number[] = [];
  const work = async (item: number) => {
    await sleep(item === 1 ? 2 : 10);
    if (item === 1) throw new RowkeyError('etag-mismatch', 'Refused.');
    ended.push(item);
    if (item === 2) throw new RowkeyError('storage-unavailable', 'No reply.');
    return item;
  };
  const items = Array.from({ length: 20 }, (_, index) => index);
  await expect(allEnded(items, work)).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(ended.toSorted()).toEqual([0, 2, 3, 4, 5, 6, 7]);
  await expect(allEnded([1], work)).rejects.toMatchObject({ code: 'etag-mismatch' });
  expect(await allEnded([3, 4], work)).toEqual([3, 4]);
});
