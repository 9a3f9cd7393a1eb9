import { createDefaultHttpClient, RestError } from '@azure/core-rest-pipeline';
import { beforeAll, describe, expect, test } from 'vitest';
import { settleMember } from '../../../../lib/features/index-entities/index-entities.ts';
import { costOf } from '../../../cost-of.ts';
import { engineRead, engineReconcile } from '../../../kit/engine.ts';
import { storageAccounts, storageRows, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

/** The lists of an index of lists, whose members the reconciler adds and removes. */

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
beforeAll(async () => {
  await storageTables.createTable(storage, 'lists');
  await storageTables.provision(storage, { tables: [], queues: [], containers: ['large'] });
});

const at = (row: string) => ({ table: 'lists', partition: 'one', row });
const hold = engineReconcile.holdFor({ now: Date.now }, 60_000);
const settle = (row: string, member: string, isWanted: boolean, through = storage) =>
  settleMember(through, { index: 'tags', ...at(row), member }, { isWanted, hold });
const members = async (row: string) => engineRead.membersOf(await engineRead.readList(storage, at(row)));
const stored = (row: string) => storageRows.readRow(storage, at(row));
const blobs = async () => (await Array.fromAsync(storage.blobs.getContainerClient('large').listBlobsFlat())).length;

describe('a list', () => {
  test('has each wanted member once, in order, and is deleted with the last one', async () => {
    for (const member of ['b', 'a', 'b', 'c']) expect(await settle('short', member, true)).toBe(true);
    expect(await members('short')).toEqual(['a', 'b', 'c']);
    expect(await costOf(() => settle('short', 'a', true))).toBe(1);
    expect(await costOf(() => settle('short', 'nobody', false))).toBe(1);
    for (const member of ['a', 'c']) expect(await settle('short', member, false)).toBe(true);
    expect(await members('short')).toEqual(['b']);
    expect(await settle('short', 'b', false)).toBe(true);
    expect(await stored('short')).toBeUndefined();
    expect(await costOf(() => settle('short', 'b', false))).toBe(1);
  });

  test('gets the members that wait for it in one write', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    // A read and a write: all are known when the write begins.
    expect(await costOf(() => Promise.all(names.map((name) => settle('shared', name, true))))).toBe(2);
    expect(await members('shared')).toEqual(names);
    const changes = [settle('shared', 'a', false), settle('shared', 'f', true), settle('shared', 'b', false)];
    expect(await Promise.all(changes)).toEqual([true, true, true]);
    expect(await members('shared')).toEqual(['c', 'd', 'e', 'f']);
  });

  test('of which a blob has the members leaves no other blob', async () => {
    const long = (name: string) => name.padEnd(20_000, '-');
    for (const name of ['a', 'b', 'c']) expect(await settle('long', long(name), true)).toBe(true);
    expect([(await members('long')).length, await blobs()]).toEqual([3, 1]);
    expect(await settle('long', long('a'), false)).toBe(true);
    expect([(await members('long')).length, await blobs()]).toEqual([2, 1]);
    for (const name of ['b', 'c']) expect(await settle('long', long(name), false)).toBe(true);
    expect([await stored('long'), await blobs()]).toEqual([undefined, 0]);
  });

  test('that changed meanwhile is left to the next attempt, without a blob', async () => {
    const long = (name: string) => name.padEnd(20_000, '-');
    for (const name of ['a', 'b']) await settle('raced', long(name), true);
    const client = createDefaultHttpClient();
    let isFirst = true;
    const racing = storageAccounts.openStorage({
      connectionString,
      httpClient: {
        async sendRequest(request) {
          const isWrite = request.method !== 'GET' && request.url.includes('/lists');
          if (isWrite && isFirst) {
            isFirst = false;
            await settle('raced', long('z'), true);
          }
          return client.sendRequest(request);
        },
      },
    });
    expect(await settle('raced', long('c'), true, racing)).toBe(false);
    expect([(await members('raced')).map(([first]) => first), await blobs()]).toEqual([['a', 'b', 'z'], 1]);
    expect(await settle('raced', long('c'), true, racing)).toBe(true);
    expect((await members('raced')).length).toBe(4);
    for (const name of ['a', 'b', 'c', 'z']) await settle('raced', long(name), false);
    expect(await blobs()).toBe(0);
  });

  test('is written once if the reply of the write is lost', async () => {
    const client = createDefaultHttpClient();
    let isFirst = true;
    const losing = storageAccounts.openStorage({
      connectionString,
      httpClient: {
        async sendRequest(request) {
          const response = await client.sendRequest(request);
          if (request.method === 'GET' || !request.url.includes('/lists') || !isFirst) return response;
          isFirst = false;
          throw new RestError('The reply is lost.', { code: 'ECONNRESET', request });
        },
      },
    });
    const long = 'a'.padEnd(40_000, '-');
    expect(await settle('lossy', long, true, losing)).toBe(true);
    expect([await members('lossy'), await blobs()]).toEqual([[long], 1]);
    await settle('lossy', long, false);
    expect(await blobs()).toBe(0);
  });
});

test.each([
  ['foreign', '{}'],
  ['an-entity', '{"EntityType":"notes","WriteId":"w","Incarnation":"i"}'],
])('another row in the place of a list rejects members, and has none to remove: %s', async (row, marks) => {
  const properties = { Members: '["a"]', ...JSON.parse(marks) };
  await storageRows.submit(storage, { ...at(row), actions: [{ kind: 'insert', row, properties }] });
  const before = await stored(row);
  await expect(settle(row, 'a', true)).rejects.toMatchObject({ code: 'needs-repair' });
  expect(await settle(row, 'a', false)).toBe(true);
  expect(await stored(row)).toEqual(before);
});
