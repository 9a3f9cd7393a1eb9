// @module-tag long

import { RestError } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import type { Internal } from '../../kit/internal.ts';
import { operationsMove } from '../../kit/operations.ts';
import {
  type Action,
  type Storage,
  storageBlobs,
  storageRows,
  storageSlots,
  storageTables,
} from '../../kit/storage.ts';
import { countTurns } from '../../patient-clock.ts';
import { accountNamed, RESOURCES, TABLE } from '../storage/several-accounts.ts';
import { blobIn, contentsOf, quick, rowsIn, storageToMove } from './storage-to-move.ts';

countTurns();

test('moves the rows of tables that the model no longer has, and leaves those of other apps', {
  tags: ['slow'],
}, async () => {
  const { open, storage, slots } = await storageToMove(1);
  const shape = { version: 1, table: 'former', partition: '{id}', row: 'r', indexes: {}, unbuilt: [] };
  const leftOver = { name: { kind: 'interPartition', table: 'formerbyname', partition: '{name}', row: 'r' } };
  await storageRows.submit(storage, {
    table: storageSlots.SYSTEM_TABLE,
    partition: 'model',
    actions: [{ kind: 'insert', row: 'former', properties: { Shape: JSON.stringify({ ...shape, leftOver }) } }],
  });
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const actions: Action[] = [{ kind: 'insert', row: 'r', properties: {} }];
  for (const table of ['former', 'formerbyname', 'others']) {
    await first.table(table).createTable();
    await storageRows.submit(first, { table, partition: 'p0', actions });
  }
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], quick);
  await operationsMove.cleanUp(open(), quick);
  expect(await storageTables.listTables(second, '')).toEqual([
    'former',
    'formerbyname',
    storageSlots.SYSTEM_TABLE,
    TABLE,
  ]);
  for (const [account, table, count] of [
    [first, 'former', 0],
    [second, 'former', 1],
    [second, 'formerbyname', 1],
    [first, 'others', 1],
  ] as const)
    expect((await storageRows.readRange(account, { table, partition: 'p0', from: '' })).rows).toHaveLength(count);
});

test('an operator of an older release moves what clients have written to a table of a newer one', {
  tags: ['slow'],
}, async () => {
  const { open, storage, slots } = await storageToMove(1);
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const table = 'drafts';
  const Shape = { version: 1, table, partition: '{id}', row: 'r', indexes: {}, unbuilt: [], leftOver: {} };
  const declared: Action = {
    kind: 'insert',
    row: 'drafts',
    properties: { Shape: JSON.stringify({ ...Shape, isWrittenByClients: true }) },
  };
  await storageRows.submit(storage, { table: storageSlots.SYSTEM_TABLE, partition: 'model', actions: [declared] });
  await first.table(table).createTable();
  await first.table(table).createEntity({ partitionKey: 'p0', rowKey: 'r', text: 'of a client' });
  const isKnown: Internal['IsOwnRow'] = (row) => row.table !== table;
  const older = { ...quick, resources: { ...RESOURCES, isOwnRow: isKnown } };
  const tables = [...RESOURCES.tables, table];
  const newer = { ...quick, resources: { ...RESOURCES, tables, clientTables: [table], isOwnRow: () => true } };
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], older);
  await operationsMove.cleanUp(open(), newer);
  const rowsOf = async (account: Storage) =>
    (await storageRows.readRange(account, { table, partition: 'p0', from: '' })).rows;
  expect([await rowsOf(first), await rowsOf(second)]).toMatchObject([[], [{ row: 'r' }]]);
});

test('stops before it overwrites a row of another program at the target, and names it', {
  tags: ['slow'],
}, async () => {
  const { open, storage, slots, keys } = await storageToMove(3);
  const isOwnRow: Internal['IsOwnRow'] = ({ properties }) => properties.EntityType === 'thing';
  const given = { ...quick, resources: { ...RESOURCES, isOwnRow } };
  const table = accountNamed(storage, 'second').table(TABLE);
  for (const rowKey of ['a', 'b']) await table.createEntity({ partitionKey: 'p1', rowKey, Other: 1 });
  const others = () => Array.fromAsync(table.listEntities({ queryOptions: { filter: 'Other eq 1' } }));
  const before = await others();
  await expect(operationsMove.moveSlots(open(), [{ slots, to: 'second' }], given)).rejects.toThrow(
    /^The account second has a row of another program at the key of a row that moves there: \["things","p1","a"\]\..*accounts.*resume/,
  );
  expect(Object.keys(await contentsOf(open()))).toEqual(keys.map((key) => `${key}/a`));
  await operationsMove.abortMoves(open(), given);
  expect(await others()).toEqual(before);
  expect(await rowsIn(storage, 'second')).toEqual(['p1/a', 'p1/b']);
  await table.deleteEntity('p1', 'a');
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], given);
  await operationsMove.cleanUp(open(), given);
  expect(Object.keys(await contentsOf(open()))).toContain('p1/a');
  expect((await others()).map(({ rowKey }) => rowKey)).toEqual(['b']);
});

test('keeps a blob that another process has written at the target since it was listed', async () => {
  const { open, storage, memoryOf } = await storageToMove(1);
  const [container = ''] = RESOURCES.containers;
  const [at, second] = [{ container, name: blobIn('07a', 1) }, accountNamed(storage, 'second')];
  const memory = memoryOf('second');
  await storageBlobs.writeBlob(storage, at, Buffer.from('old'), { type: 'text/plain' });
  memory.intercept = async (request, send) => {
    if (request.method !== 'PUT' || !request.url.includes(at.name)) return send();
    memory.intercept = undefined;
    await storageBlobs.writeBlob(second, at, Buffer.from('new'), { type: 'text/plain' });
    return send();
  };
  expect((await operationsMove.moveSlots(open(), [{ slots: ['07a'], to: 'second' }], quick)).blobs).toBe(0);
  expect(memory.intercept).toBeUndefined();
  expect((await second.container(container).getBlobClient(at.name).downloadToBuffer()).toString()).toBe('new');
});

test('moves the rows of a table that a model has which is deployed while the move begins', {
  tags: ['slow'],
}, async () => {
  const { open, storage, memoryOf, slots } = await storageToMove(1);
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const memory = memoryOf('first');
  const insert = (row: string, properties = {}): Action[] => [{ kind: 'insert', row, properties }];
  memory.intercept = async (request, send) => {
    if (request.method === 'GET' || !String(request.body).includes('"Slots"')) return send();
    memory.intercept = undefined;
    // A process that does not know of the move yet.
    const Shape = JSON.stringify({
      version: 1,
      table: 'later',
      partition: '{id}',
      row: 'r',
      indexes: {},
      unbuilt: [],
      leftOver: {},
    });
    await storageRows.submit(storage, {
      table: storageSlots.SYSTEM_TABLE,
      partition: 'model',
      actions: insert('later', { Shape }),
    });
    await first.table('later').createTable();
    await storageRows.submit(first, { table: 'later', partition: 'p0', actions: insert('r') });
    return send();
  };
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], quick);
  expect(memory.intercept).toBeUndefined();
  expect((await storageRows.readRange(second, { table: 'later', partition: 'p0', from: '' })).rows).toHaveLength(1);
});

test('leaves no row of a table that is dropped while it is copied, in one account after the other', async () => {
  const { open, storage, memoryOf, slots } = await storageToMove(1);
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const memory = memoryOf('second');
  const table = `${TABLE}2026`;
  for (const account of [first, second]) await account.table(table).createTable();
  await storageRows.submit(first, { table, partition: 'p0', actions: [{ kind: 'insert', row: 'r', properties: {} }] });
  let copies = 0;
  memory.intercept = async (request, send) => {
    if (!`${request.url} ${request.body}`.includes(`${table}(`) || request.method === 'GET') return send();
    copies += 1;
    if (copies === 1) await second.table(table).deleteTable();
    const reply = await send();
    if (copies === 2) await first.table(table).deleteTable();
    return reply;
  };
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], quick);
  expect(copies).toBeGreaterThan(1);
  expect((await storageRows.scanTable(open(), { table, limit: 10 })).rows).toEqual([]);
  expect(await contentsOf(open())).toEqual({ 'p0/a': 'p0' });
});

test('copies a blob again whose headers were replaced while it was copied', { tags: ['slow'] }, async () => {
  const { open, storage, memoryOf } = await storageToMove(1);
  const [container = ''] = RESOURCES.containers;
  const [at, second] = [{ container, name: blobIn('07a', 1) }, accountNamed(storage, 'second')];
  const memory = memoryOf('second');
  await storageBlobs.writeBlob(storage, at, Buffer.from('one'), { type: 'text/html' });
  memory.intercept = async (request, send) => {
    if (request.method !== 'PUT' || !request.url.includes(at.name)) return send();
    memory.intercept = undefined;
    await storageBlobs.setBlobHeaders(open(), at, {
      type: 'text/plain',
      disposition: 'attachment',
      md5: Buffer.alloc(16),
    });
    return send();
  };
  expect((await operationsMove.moveSlots(open(), [{ slots: ['07a'], to: 'second' }], quick)).blobs).toBe(1);
  const headers = await second.container(container).getBlobClient(at.name).getProperties();
  expect(headers).toMatchObject({ contentType: 'text/plain', contentDisposition: 'attachment', contentLength: 3 });
});

test('leaves what clients upload at the former account, where they may replace it, until the clean-up', {
  tags: ['slow'],
}, async () => {
  const { open, storage, slots } = await storageToMove(1);
  const given = { ...quick, resources: { ...RESOURCES, containers: ['uploads'] } };
  await storageTables.provision(storage, given.resources);
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const at = { container: 'uploads', name: blobIn(slots[0] ?? '', 1) };
  await storageBlobs.writeBlob(storage, at, Buffer.from('begun'), { type: 'text/plain' });
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], given);
  // With a grant of the former account.
  await storageBlobs.writeBlob(first, at, Buffer.from('whole'), { type: 'text/plain' });
  expect(String(await storageBlobs.readBlob(open(), at))).toBe('whole');
  await operationsMove.cleanUp(open(), given);
  expect([await storageBlobs.readBlob(first, at), String(await storageBlobs.readBlob(second, at))]).toEqual([
    undefined,
    'whole',
  ]);
});

test('moves the blobs of slots, and leaves those of others, of other programs and of containers without slots', {
  tags: ['slow'],
}, async () => {
  const { open, storage } = await storageToMove(1);
  const container = RESOURCES.containers[0] ?? '';
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const content = { type: 'text/plain', cacheControl: 'max-age=5', metadata: { owner: 'x' } };
  const [empty, one, two, late] = [0, 1, 2, 3].map((number) => blobIn('07a', number)) as [
    string,
    string,
    string,
    string,
  ];
  const [other, former] = [blobIn('0f1', 1), blobIn('', 1)];
  const foreign = ['07a/report.pdf', '07a/things/report.pdf', 'report.pdf'];
  const write = (account: Storage, name: string) =>
    storageBlobs.writeBlob(account, { container, name }, Buffer.from(name), content);
  for (const name of [one, two, other, former]) await write(storage, name);
  for (const account of [first, second]) for (const name of foreign) await write(account, name);
  await storageBlobs.writeBlob(storage, { container, name: empty }, Buffer.alloc(0), content);
  const namesIn = (account: Storage) =>
    Array.fromAsync(storageBlobs.listContainer(account, container), ({ name }) => name);
  const slots = ['07a', storageSlots.slotOf(former), storageSlots.slotOf('report.pdf')];
  expect((await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], quick)).blobs).toBe(4);
  expect(await namesIn(second)).toEqual([...foreign, empty, one, two, former].sort());
  const copied = await second.container(container).getBlobClient(one).getProperties();
  const original = await first.container(container).getBlobClient(one).getProperties();
  for (const name of ['contentType', 'cacheControl', 'metadata', 'contentLength', 'contentMD5'] as const)
    expect(copied[name]).toEqual(original[name]);
  // A client that has a grant of the former account.
  await write(first, late);
  await storageBlobs.deleteBlob(open(), { container, name: two });
  expect(await operationsMove.cleanUp(open(), quick)).toMatchObject({ blobs: 4 });
  expect(await namesIn(first)).toEqual([...foreign, other].sort());
  expect(await namesIn(second)).toEqual([...foreign, empty, late, one, former].sort());
});

test('copies again what a lost request has not copied', { tags: ['slow'] }, async () => {
  const { open, memoryOf, keys, slots } = await storageToMove(2);
  const memory = memoryOf('second');
  memory.intercept = async (request, send) => {
    if (request.method === 'GET' || !`${request.url}${request.body}`.includes('p1')) return send();
    memory.intercept = undefined;
    throw new RestError('request lost', { code: 'ECONNRESET', request });
  };
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], quick);
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length);
});
