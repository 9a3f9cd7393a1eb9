// @module-tag long

import { gunzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../../../lib/define.ts';
import { createMemoryStorage, type MemoryStorage } from '../../../../lib/testing/index.ts';
import { costOf } from '../../../cost-of.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineCore } from '../../../kit/engine.ts';
import { operationsBackup, operationsMove } from '../../../kit/operations.ts';
import {
  type Storage,
  storageAccounts,
  storageBlobs,
  storageRows,
  storageSlots,
  storageTables,
} from '../../../kit/storage.ts';
import { TABLE } from '../../storage/several-accounts.ts';
import { blobIn, put, quick, storageToMove } from '../storage-to-move.ts';

const { thing } = deploy(
  defineEntity('thing', {
    schema: z.object({ place: z.string(), id: z.string(), name: z.string().optional() }),
    table: TABLE,
    key: { partition: '{place}', row: '{id}' },
    indexes: { byname: interPartitionIndex({ table: 'thingsbyname', partition: '{name}', row: '{place}_{id}' }) },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const entities = [thing];
const TABLES = ['operations', 'system', TABLE];

const open = (memory: MemoryStorage, name?: string) =>
  storageAccounts.openStorage({ accounts: [{ ...memory, name: name ?? storageAccounts.FIRST_ACCOUNT }] });

/** An app with a backup, each in an account in memory. */
async function openBackup(given?: Storage) {
  const backupMemory = createMemoryStorage({ account: 'backup' });
  const memory = createMemoryStorage();
  const backup = open(backupMemory, 'backup');
  const storage: Storage = { ...(given ?? open(memory)), backup };
  const tables = [TABLE, 'thingsbyname', 'operations', 'system', 'poison'];
  await storageTables.provision(storage, { tables, queues: [], containers: ['large', 'audit'] });
  const clock = { now: Date.now() };
  const process = (other: Partial<Storage> = {}) =>
    engineCore.createEngine({ ...storage, ...other }, { now: () => clock.now });
  const engine = process();
  return {
    ...{ memory, backupMemory, storage, backup, clock, engine, process },
    snapshot: (options: Partial<Parameters<typeof operationsBackup.takeSnapshot>[2]> = {}, from = engine) =>
      operationsBackup.takeSnapshot(from, entities, { days: 35, ...options }),
    async manifest() {
      const { value } = await operationsBackup.readManifests({ backup }).next();
      return value ?? expect.fail('There is no manifest.');
    },
    async rowsAt(at = new Date(Date.now() + 5_000).toISOString()) {
      const { rows } = await operationsBackup.readState({ backup }, at);
      return Array.fromAsync(rows);
    },
  };
}

/** Writes rows of the app, as a release of it would. */
async function fill(storage: Storage, keys: readonly string[], partition = 'p'): Promise<void> {
  for (let at = 0; at < keys.length; at += 99)
    await storageRows.submit(storage, {
      table: TABLE,
      partition,
      actions: keys.slice(at, at + 99).map((row) => ({ kind: 'upsert', row, properties: { EntityType: 'thing' } })),
    });
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => String(at).padStart(6, '0'));

test('has the values of each type as they are stored, in the order of keys, with the times of storage', async () => {
  const { storage, snapshot, rowsAt, manifest, backup } = await openBackup();
  const properties = {
    EntityType: 'thing',
    Text: 'a\n"ü\u2028😀',
    Yes: true,
    Int32: 5,
    Whole: { type: 'Double', value: '5' },
    Double: 0.1,
    NotANumber: { type: 'Double', value: 'NaN' },
    Int64: { type: 'Int64', value: '9223372036854775807' },
    Guid: { type: 'Guid', value: '01234567-89ab-cdef-0123-456789abcdef' },
    Binary: { type: 'Binary', value: 'AAEC' },
    DateTime: { type: 'DateTime', value: '2026-11-29T12:51:09.1234567Z' },
  };
  const table = storage.table(TABLE);
  const { etag = '' } = await table.createEntity({ partitionKey: 'b', rowKey: 'ä', ...properties });
  for (const [partitionKey, rowKey] of [
    ['b', 'Z'],
    ['a', 'z'],
  ] as const)
    await table.createEntity({ partitionKey, rowKey, EntityType: 'thing' });
  const blob = { container: 'large', name: blobIn('07a', 1) };
  await storageBlobs.writeBlob(storage, blob, Buffer.from('abc'), { type: 'text/plain' });
  await snapshot();
  const rows = await rowsAt();
  expect(rows.map(({ partition, row }) => partition + row)).toEqual(['az', 'bZ', 'bä']);
  const [, time] = /datetime'(.*)'/.exec(decodeURIComponent(etag)) ?? [];
  expect(rows[2]).toEqual({
    table: TABLE,
    partition: 'b',
    row: 'ä',
    time,
    properties: { ...properties, Whole: { type: 'Double', value: '5.0' }, Double: { type: 'Double', value: '0.1' } },
  });
  const { tables, blobs } = await manifest();
  expect(blobs).toEqual({ large: { count: 1, bytes: 3 }, audit: { count: 0, bytes: 0 } });
  const [part] = tables[TABLE]?.parts ?? [];
  const bytes = await storageBlobs.readBlob(backup, { container: 'backup', name: part?.name ?? '' });
  expect(bytes?.length).toBe(part?.bytes);
  expect(
    gunzipSync(bytes ?? '')
      .toString()
      .match(/\n/g),
  ).toHaveLength(3);
});

test('has no derived rows, and none of other programs, of the engine or of moves', async () => {
  const { storage, snapshot, rowsAt, manifest } = await openBackup();
  const insert = (table: string, partitionKey: string, rowKey: string, properties = {}) =>
    storage.table(table).createEntity({ partitionKey, rowKey, ...properties });
  await insert(TABLE, 'p', 'own', { EntityType: 'thing' });
  await insert(TABLE, 'p', 'other', { Name: 'of another program' });
  await insert(TABLE, 'p', '~own_!mabc');
  await insert('thingsbyname', 'p', 'copy', { EntityType: 'thing' });
  await insert('system', 'requests-a', 'r', { EntityType: 'requests' });
  await insert('system', 'blocked', 'user', { EntityType: 'blocked' });
  await storage.table('others').createTable();
  await insert('others', 'p', 'r', { EntityType: 'thing' });
  await snapshot();
  expect((await rowsAt()).map(({ table, row }) => `${table}/${row}`)).toEqual(['system/user', `${TABLE}/own`]);
  expect(Object.keys((await manifest()).tables)).toEqual(TABLES);
});

test('is later than each of its rows, and begins before each row that is changed meanwhile', async () => {
  const { storage, memory, snapshot, manifest, rowsAt } = await openBackup();
  await fill(storage, numbered(3));
  memory.intercept = async (request, send) => {
    if (!request.url.includes(`${TABLE}()`)) return send();
    memory.intercept = undefined;
    await fill(storage, ['000001']);
    return send();
  };
  await snapshot();
  const { begunAt, finishedAt } = await manifest();
  const times = (await rowsAt(finishedAt)).map(({ time }) => time);
  expect(times).toHaveLength(3);
  expect(memory.intercept).toBeUndefined();
  expect(times.every((time) => time <= finishedAt)).toBe(true);
  // The clocks of the accounts may differ.
  expect(Date.parse(begunAt)).toBeLessThanOrEqual(Date.parse(times.toSorted().at(-1) ?? '') - baseValues.MINUTE_MS);
});

describe('a run that ends before its snapshot is complete', { tags: ['slow'] }, () => {
  test('is continued by the next one, which stores no part again', async () => {
    const { storage, snapshot, rowsAt, backup, clock } = await openBackup();
    await fill(storage, numbered(6_000));
    const ended = await snapshot({ until: clock.now, onProgress: () => undefined });
    expect(ended).toMatchObject({ isComplete: false, rows: 0 });
    const end = clock.now + 1;
    const half = await snapshot({
      until: end,
      onProgress: ({ rows }) => {
        if (rows > 2_000) clock.now = end;
      },
    });
    expect(half).toMatchObject({ id: ended.id, isComplete: false });
    expect(half.parts.written).toBeGreaterThan(0);
    expect(await Array.fromAsync(operationsBackup.readManifests({ backup }))).toEqual([]);
    const whole = await snapshot();
    expect(whole).toMatchObject({ id: ended.id, isComplete: true, rows: 6_000 });
    const parts = await storageBlobs.listBlobs(backup, { container: 'backup', prefix: 'parts/' });
    expect(parts).toHaveLength(half.parts.written + whole.parts.written);
    expect((await rowsAt()).map(({ row }) => row)).toEqual(numbered(6_000));
    clock.now += 1;
    expect((await snapshot()).id).not.toBe(ended.id);
  });

  test('is begun again when it is old', async () => {
    const { snapshot, clock } = await openBackup();
    const { id } = await snapshot({ until: clock.now });
    clock.now += 7 * baseValues.HOUR_MS;
    expect(await snapshot()).toMatchObject({ isComplete: true, id: expect.not.stringMatching(id) });
  });

  test('may be killed at each of its calls to storage', async () => {
    const keys = numbered(2_500);
    for (let at = 1, isOver = false; !isOver; at += 1) {
      const { storage, snapshot, rowsAt, backupMemory, memory, manifest } = await openBackup();
      await fill(storage, keys);
      let calls = 0;
      for (const each of [memory, backupMemory])
        each.intercept = async (_request, send) => {
          calls += 1;
          // Executed or not, and nothing follows.
          if (calls === at && at % 2 === 0) await send();
          if (calls >= at) throw new Error('This process is dead.');
          return send();
        };
      isOver = await snapshot({ saveEveryMs: 0 }).then(
        () => true,
        () => false,
      );
      for (const each of [memory, backupMemory]) each.intercept = undefined;
      expect(await snapshot(), `call ${at}`).toMatchObject({ isComplete: true, rows: keys.length });
      expect((await rowsAt()).map(({ row }) => row)).toEqual(keys);
      expect((await manifest()).tables[TABLE]?.rows).toBe(keys.length);
    }
  });
});

describe('several accounts', () => {
  test('are read 1,000 rows a transaction', { tags: ['slow'] }, async () => {
    const { open: openAgain, keys, requests } = await storageToMove(40);
    const slots = keys.filter((_, at) => at % 2 === 0).map(storageSlots.slotOf);
    await operationsMove.moveSlots(openAgain(), [{ slots, to: 'second' }], quick);
    await operationsMove.cleanUp(openAgain(), quick);
    for (const key of keys) await fill(openAgain(), numbered(250), key);
    const { snapshot } = await openBackup(openAgain());
    requests.length = 0;
    expect((await snapshot()).rows).toBe(40 * 251);
    expect(requests.filter(({ url }) => url.includes(`${TABLE}()`)).length).toBeLessThanOrEqual(13);
  });

  test('are read again where a slot has moved, and its rows are deleted, during the read', async () => {
    const moving = await storageToMove(8);
    const { snapshot, rowsAt } = await openBackup(moving.storage);
    const memory = moving.memoryOf('first');
    let moved = 0;
    memory.intercept = async (request, send) => {
      if (request.method !== 'GET' || !request.url.includes(`${TABLE}()`)) return send();
      memory.intercept = undefined;
      const slots = moving.slots.slice(0, 4);
      moved = (await operationsMove.moveSlots(moving.open(), [{ slots, to: 'second' }], quick)).rows;
      await operationsMove.cleanUp(moving.open(), quick);
      // The process has stood still since it read of the slots.
      const now = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 20 * baseValues.MINUTE_MS);
      return send();
    };
    await snapshot();
    vi.restoreAllMocks();
    expect(moved).toBeGreaterThan(0);
    expect((await rowsAt()).map(({ partition }) => partition).toSorted()).toEqual(moving.keys.toSorted());
  });

  test('have each row once while slots move between pages of a scan', { tags: ['slow'] }, async () => {
    const moving = await storageToMove(40);
    const { storage, snapshot, rowsAt } = await openBackup(moving.storage);
    const [one = '', ...others] = moving.keys;
    for (const key of moving.keys) await fill(moving.open(), numbered(60), key);
    await put(moving.open(), one, 'last', 1);
    // A process may use for so long what it has read of the slots.
    const timing = { ...quick.timing, leaseMs: storageSlots.LEASE_MS, holdMs: baseValues.MINUTE_MS };
    const memory = moving.memoryOf('first');
    let moved = 0;
    memory.intercept = async (request, send) => {
      const response = await send();
      if (moved > 0 || request.method !== 'GET' || !request.url.includes(`${TABLE}()`)) return response;
      memory.intercept = undefined;
      // The page that was read has rows of slots that go now, and each row gets another version at its new owner.
      const slots = moving.slots.slice(0, 20);
      moved += (await operationsMove.moveSlots(moving.open(), [{ slots, to: 'second' }], { ...quick, timing })).rows;
      return response;
    };
    await snapshot();
    expect(moved).toBeGreaterThan(1_000);
    const wanted = moving.keys.flatMap((key) =>
      ['a', ...numbered(60), ...(key === one ? ['last'] : [])].map((row) => `${key}/${row}`),
    );
    expect((await rowsAt()).map(({ partition, row }) => `${partition}/${row}`).toSorted()).toEqual(wanted.toSorted());
    expect(others.length).toBe(39);
    expect(storage.accounts?.list).toHaveLength(2);
  });
});

describe('parts', { tags: ['slow'] }, () => {
  test('are stored once, and again only where a row has changed or when they are old', async () => {
    const { storage, snapshot, rowsAt, clock, manifest } = await openBackup();
    await fill(storage, numbered(9_000));
    const first = await snapshot();
    expect(first).toMatchObject({ isComplete: true, rows: 9_000, parts: { reused: 0 } });
    const { written } = first.parts;
    expect(written).toBeGreaterThan(3);
    clock.now += 1;
    expect(await snapshot()).toMatchObject({ parts: { written: 0, reused: written }, bytes: { written: 0 } });
    // A row more changes the parts around it, and moves the ends of no others.
    await fill(storage, ['000000a']);
    clock.now += 1;
    const third = await snapshot();
    expect(third.parts.written).toBeLessThanOrEqual(2);
    expect(third.parts.reused).toBeGreaterThanOrEqual(written - 2);
    expect((await rowsAt()).map(({ row }) => row)).toEqual(['000000', '000000a', ...numbered(9_000).slice(1)]);
    clock.now += 36 * baseValues.DAY_MS;
    expect((await snapshot()).parts.reused).toBe(0);
    expect((await rowsAt()).length).toBe(9_001);
    expect((await manifest()).tables[TABLE]?.rows).toBe(9_001);
  });

  test('take a transaction for 1,000 rows that have not changed', async () => {
    const { storage, snapshot, clock } = await openBackup();
    const cost = async () => {
      clock.now += 1;
      return costOf(() => snapshot());
    };
    await snapshot();
    const empty = await cost();
    await fill(storage, numbered(5_500));
    await cost();
    expect(await cost()).toBe(empty + 5);
  });
});
