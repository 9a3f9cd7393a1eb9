import { beforeAll, describe, expect, test } from 'vitest';
import { isLongList, LIST_FORM, membersOf, readList } from '../../../../lib/engine/read/member-list.ts';
import { storageAccounts, storageRows, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

/** Lists of members whose rows have them, and lists of which a blob has them: the same to readers and writers. */

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
beforeAll(async () => {
  await storageTables.createTable(storage, 'lists');
  await storageTables.provision(storage, {
    tables: [],
    queues: [],
    containers: ['large'],
  });
});

const at = (row: string) => ({ table: 'lists', partition: 'one', row });
const members = (count: number) => Array.from({ length: count }, (_, index) => `${index}`.padStart(200, '0'));
const stored = (row: string) => storageRows.readRow(storage, at(row));
const blobs = async () => (await Array.fromAsync(storage.blobs.getContainerClient('large').listBlobsFlat())).length;

async function change(row: string, { add = [], remove = [] }: { add?: string[]; remove?: string[] }) {
  const former = await readList(storage, at(row));
  const action = LIST_FORM.change(former, row, { add, remove });
  if (!action) return 'unchanged';
  const written = await LIST_FORM.write(storage, at(row), { action, former });
  expect(await storageRows.tryAction(storage, at(row), written)).toBe(true);
  if (former) await LIST_FORM.drop(storage, former);
  return action.kind;
}

describe.each([
  ['in its row', 3, false],
  ['in a blob', 200, true],
] as const)('a list %s', (name, count, isLong) => {
  const row = name.replaceAll(' ', '');

  test('has its members in order, and a change that adds and removes nothing is none', async () => {
    const all = members(count);
    expect(await change(row, { add: all.toReversed() })).toBe('insert');
    expect(membersOf(await readList(storage, at(row)))).toEqual(all);
    expect(LIST_FORM.members((await readList(storage, at(row))) ?? { ...at(row), etag: '', properties: {} })).toEqual(
      all,
    );
    const found = await stored(row);
    expect(found && isLongList(found)).toBe(isLong);
    expect(found?.properties.Members === undefined).toBe(isLong);
    expect(found && membersOf(await LIST_FORM.complete(storage, found))).toEqual(all);
    expect(found && LIST_FORM.has(found)).toBe(true);
    expect(await change(row, { add: all.slice(0, 2), remove: ['nobody'] })).toBe('unchanged');
    expect(await change(row, { add: ['z'], remove: all.slice(0, 1) })).toBe('replace');
    expect(membersOf(await readList(storage, at(row)))).toEqual([...all.slice(1), 'z']);
    expect(await change(row, { remove: [...all, 'z'] })).toBe('replace');
    expect((await stored(row))?.properties).toMatchObject({ EntityType: 'list', Members: '[]' });
    expect(await blobs()).toBe(0);
  });

  test('that is lost rejects reads and writes until it is emptied', async () => {
    const lost = `lost${row}`;
    await change(lost, { add: members(count) });
    const { etag = '', properties = {} } = (await stored(lost)) ?? {};
    const broken = isLong
      ? { MembersBlob: JSON.stringify({ ...JSON.parse(String(properties.MembersBlob)), blob: 'gone' }) }
      : { Members: '{' };
    await storageRows.tryAction(storage, at(lost), { kind: 'merge', row: lost, properties: broken, etag });
    await expect(readList(storage, at(lost))).rejects.toMatchObject({ code: 'needs-repair' });
    const found = await LIST_FORM.readAny(storage, at(lost));
    expect(found && LIST_FORM.isLost(found)).toBe(true);
    expect(membersOf(found)).toEqual([]);
    expect(await LIST_FORM.restore(storage, at(lost))).toBe(true);
    const emptied = await readList(storage, at(lost));
    expect(emptied?.properties).toEqual({ EntityType: 'list', Members: '[]' });
    // What is not lost stays as it is.
    expect(await LIST_FORM.restore(storage, at(lost))).toBe(true);
    expect((await stored(lost))?.etag).toBe(emptied?.etag);
    expect(await LIST_FORM.restore(storage, at('absent'))).toBe(true);
    expect(await stored('absent')).toBeUndefined();
  });
});

test('a row of another kind is no list, and no change of one replaces it', async () => {
  const other = { ...at('other'), etag: 'x', properties: { EntityType: 'thing', Members: '["a"]' } };
  expect([LIST_FORM.has(other), LIST_FORM.members(other), LIST_FORM.isLost({ ...other, properties: {} })]).toEqual([
    false,
    [],
    false,
  ]);
  expect(() => LIST_FORM.change({ ...other, properties: {} }, 'other', { add: ['a'], remove: [] })).toThrow();
  expect(membersOf({ ...other, properties: { Members: '["a",1,"b"]' } })).toEqual(['a', 'b']);
  expect([membersOf(undefined), membersOf({ ...other, properties: { Members: '{}' } })]).toEqual([[], []]);
});
