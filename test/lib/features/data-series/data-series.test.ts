import type { HttpClient } from '@azure/core-rest-pipeline';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineSeries, type Values } from '../../../../lib/index.ts';
import { costOf } from '../../../cost-of.ts';
import { type FaultTrial, outcomeOf, tryFaults } from '../../../fault-driver.ts';
import { FAULTS, faultyHttpClient, interruptedHttpClient } from '../../../faulty-http-client.ts';
import { messagehours as hours, messageyears as years } from '../../../fixtures/model.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineCore } from '../../../kit/engine.ts';
import { featureSeries } from '../../../kit/features.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { samplePoints } from '../../../points.ts';
import { slots } from '../../../slots.ts';
import { testStorage } from '../../../storage.ts';
import { rowsOf } from '../../../world.ts';

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
const engine = engineCore.createEngine(storage);
beforeAll(async () => {
  await storageTables.createTable(storage, 'messagehours');
  await storageTables.createTable(storage, 'messageyears');
});

const engineThrough = (httpClient: HttpClient) =>
  engineCore.createEngine(storageAccounts.openStorage({ connectionString, httpClient }));

describe('a data series', () => {
  test('is set by one merge and read by one get', async () => {
    const key = { employeeId: '000001', day: '2026-11-20' };
    await expect(featureSeries.readSeries(engine, hours, key)).rejects.toMatchObject({ code: 'not-found' });
    expect(await costOf(() => featureSeries.setCounts(engine, hours, key, slots({ 0: 5 })))).toBe(1);
    expect(await costOf(() => featureSeries.setCounts(engine, hours, key, slots({ 23: 7 })))).toBe(1);
    expect(await costOf(() => featureSeries.readSeries(engine, hours, key))).toBe(1);
    const { counts } = await featureSeries.readSeries(engine, hours, key);
    expect(counts).toEqual([5, ...Array.from({ length: 22 }, () => 0), 7]);
  });

  test('has zeros for what is no count, and that clients have written', async () => {
    const key = { employeeId: '000012', day: '2026-11-20' };
    await featureSeries.setCounts(engine, hours, key, slots({ 0: 5 }));
    const row = (await rowsOf(storage, 'messagehours')).find((one) => JSON.stringify(one).includes('000012'));
    const wrong = { Count001: -1, Count002: 1.5, Count003: 'many', Count004: { type: 'Double', value: '4e9' } };
    const at = { partitionKey: String(row?.partitionKey), rowKey: String(row?.rowKey) };
    await storage.table('messagehours').updateEntity({ ...at, ...wrong }, 'Merge');
    const { counts } = await featureSeries.readSeries(engine, hours, key);
    expect(counts).toEqual([5, ...Array.from({ length: 23 }, () => 0)]);
  });

  test('of several rows is deleted in one transaction or not at all', async () => {
    const key = { employeeId: '000011', year: 2026 };
    await featureSeries.setCounts(engine, years, key, slots({ 1: 5, 366: 7 }));
    // Two reads, then the transaction.
    expect(await costOf(() => featureSeries.deleteSeries(engine, years, key))).toBe(3);
    await expect(featureSeries.deleteSeries(engine, years, key)).rejects.toMatchObject({ code: 'not-found' });
    await featureSeries.setCounts(engine, years, key, slots({ 366: 7 }));
    await featureSeries.deleteSeries(engine, years, key);
    await expect(featureSeries.readSeries(engine, years, key)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('keeps every increment of fifty concurrent callers', async () => {
    const key = { employeeId: '000002', day: '2026-11-20' };
    // Those of one process wait for each other. The constant clock keeps callers from timing out on a slow machine.
    const processes = [storage, storageAccounts.openStorage({ connectionString })].map((each) =>
      engineCore.createEngine(each, { now: () => 0 }),
    );
    const add = (engine: Engine) => featureSeries.increment(engine, hours, key, { slot: 9, by: 1 });
    const answers = await Promise.all(Array.from({ length: 25 }, () => processes.map(add)).flat());
    expect([...answers].sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect((await featureSeries.readSeries(engine, hours, key)).counts[9]).toBe(50);
  });

  test('costs no more for concurrent increments than for the same number of sequential ones', async () => {
    const key = { employeeId: '000009', day: '2026-11-20' };
    const count = () => featureSeries.increment(engine, hours, key, { slot: 9, by: 1 });
    expect(await costOf(() => Promise.all(Array.from({ length: 10 }, count)))).toBe(20);
  });

  test('remembers its last 64 writers, and no more', async () => {
    const key = { employeeId: '000012', day: '2026-11-20' };
    const writersOf = async () => {
      const rows = await rowsOf(storage, 'messagehours');
      const row = rows.find(({ partitionKey }) => String(partitionKey).includes(key.employeeId));
      return String(row?.Writers).split(',');
    };
    await featureSeries.increment(engine, hours, key, { slot: 1, by: 1 });
    const [first] = await writersOf();
    for (let count = 1; count < 64; count += 1) await featureSeries.increment(engine, hours, key, { slot: 1, by: 1 });
    expect(await writersOf()).toHaveLength(64);
    expect((await writersOf()).at(-1)).toBe(first);
    await featureSeries.increment(engine, hours, key, { slot: 1, by: 1 });
    expect(await writersOf()).toHaveLength(64);
    expect(await writersOf()).not.toContain(first);
  });

  test('counts an increment once, whichever reply is lost', { tags: ['slow'] }, async () => {
    const key = { employeeId: '000003', day: '2026-11-20' };
    for (let at = 1; at <= 6; at += 1) {
      const client = faultyHttpClient('reply lost', at);
      const unlucky = engineThrough(client);
      await Promise.all([
        featureSeries.increment(unlucky, hours, key, { slot: 1, by: 1 }),
        featureSeries.increment(engine, hours, key, { slot: 1, by: 1 }),
      ]);
      expect((await featureSeries.readSeries(engine, hours, key)).counts[1]).toBe(2 * at);
    }
  });

  test('rejects a count outside its range', async () => {
    const key = { employeeId: '000004', day: '2026-11-20' };
    await expect(featureSeries.increment(engine, hours, key, { slot: 1, by: -1 })).rejects.toMatchObject({
      code: 'invalid-input',
    });
    await expect(featureSeries.readSeries(engine, hours, key)).rejects.toMatchObject({ code: 'not-found' });
  });
});

describe('a wide entity', () => {
  test('is stored in two rows within the limits, which are read concurrently and changed in one transaction', async () => {
    const key = { employeeId: '000001', year: 2024 };
    const every = new Map(Array.from({ length: 366 }, (_, index) => [index + 1, index * 2]));
    expect(await costOf(() => featureSeries.setCounts(engine, years, key, every))).toBe(1);
    const rows = await rowsOf(storage, 'messageyears');
    expect(rows.map(({ rowKey }) => rowKey)).toEqual(['2024', '2024_2']);
    for (const row of rows) expect(Object.keys(row).length).toBeLessThanOrEqual(252);
    expect(await costOf(() => featureSeries.readSeries(engine, years, key))).toBe(2);
    expect((await featureSeries.readSeries(engine, years, key)).counts).toEqual([...every.values()]);
    expect(await costOf(() => featureSeries.setCounts(engine, years, key, slots({ 366: 1 })))).toBe(1);
    expect(await featureSeries.increment(engine, years, key, { slot: 366, by: 4 })).toBe(5);
  });

  test('is rejected at declaration if it does not fit into its rows or declares a field that no row has', () => {
    const { schema } = years;
    const common = { table: 'years', access: { read: [], write: [] } };
    const slots = { name: 'day', first: 1, last: 366 };
    const key = { partition: '{employeeId}', row: '{year:4}' } as const;
    expect(() => defineSeries('years', { ...common, schema, key, slots })).toThrow('perRow');
    const named = { ...common, schema: schema.extend({ name: z.string() }), key };
    expect(() => defineSeries('years', { ...named, slots: { ...slots, perRow: 183 } })).toThrow('the field name');
  });
});

/** Above the numbers that tests choose. */
let counter = 100_000;
const SERIES: readonly [name: string, entity: Entity, key: () => Values, slots: readonly [number, number]][] = [
  ['in one row', hours, () => ({ employeeId: nextId(), day: '2026-11-20' }), [0, 23]],
  ['in two rows', years, () => ({ employeeId: nextId(), year: 2026 }), [1, 366]],
];

function nextId(): string {
  counter += 1;
  return String(counter).padStart(6, '0');
}

describe.each(SERIES)('a series %s', (_name, entity, newKey, [low, high]) => {
  const both = (count: number) => slots({ [low]: count, [high]: count });
  const read = async (key: Values) => {
    const found = await featureSeries.readSeries(engine, entity, key).catch(() => undefined);
    return found && { etag: found.etag, counts: [found.counts.at(0), found.counts.at(-1)] };
  };
  const etagOf = async (key: Values) => String((await read(key))?.etag);
  const isWide = entity === years;

  test('has an ETag that changes with each count, and only then', async () => {
    const key = newKey();
    const seen = new Set<string>();
    for (const change of [
      () => featureSeries.setCounts(engine, entity, key, slots({ [low]: 1 })),
      () => featureSeries.setCounts(engine, entity, key, slots({ [high]: 1 })),
      () => featureSeries.increment(engine, entity, key, { slot: high, by: 1 }),
      () => featureSeries.setCounts(engine, entity, key, both(3), { ifMatch: '*' }),
    ]) {
      await change();
      seen.add(await etagOf(key));
      seen.add(await etagOf(key));
    }
    expect(seen.size).toBe(4);
  });

  test('is changed and deleted only under the ETag that If-Match names, and otherwise stays as it is', async () => {
    const key = newKey();
    await featureSeries.setCounts(engine, entity, key, both(1));
    const stale = await etagOf(key);
    await featureSeries.increment(engine, entity, key, { slot: high, by: 1 });
    const before = await read(key);
    for (const conditions of [{ ifMatch: stale }, { ifNoneMatch: '*' }, { ifNoneMatch: String(before?.etag) }]) {
      const refusal = { code: 'etag-mismatch', etag: before?.etag };
      await expect(featureSeries.setCounts(engine, entity, key, both(9), conditions)).rejects.toMatchObject(refusal);
      await expect(featureSeries.deleteSeries(engine, entity, key, conditions)).rejects.toMatchObject(refusal);
    }
    expect(await read(key)).toEqual(before);
    const ifMatch = String(before?.etag);
    expect(await costOf(() => featureSeries.setCounts(engine, entity, key, both(5), { ifMatch }))).toBe(isWide ? 3 : 2);
    expect((await read(key))?.counts).toEqual([5, 5]);
    await expect(featureSeries.deleteSeries(engine, entity, key, { ifMatch })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    const current = await etagOf(key);
    expect(await costOf(() => featureSeries.deleteSeries(engine, entity, key, { ifMatch: current }))).toBe(
      isWide ? 5 : 3,
    );
    await expect(featureSeries.readSeries(engine, entity, key)).rejects.toMatchObject({ code: 'not-found' });
    await expect(featureSeries.deleteSeries(engine, entity, key, { ifMatch: '*' })).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(featureSeries.setCounts(engine, entity, key, both(1), { ifMatch: '*' })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    expect(await read(key)).toBeUndefined();
    const left = (await rowsOf(storage, entity.table)).filter(({ partitionKey }) => partitionKey === key.employeeId);
    expect(left).toEqual([]);
  });

  test('is created once by callers that require that it does not exist', async () => {
    const key = newKey();
    const create = (slot: number) =>
      outcomeOf(featureSeries.setCounts(engine, entity, key, slots({ [slot]: 1 }), { ifNoneMatch: '*' }));
    const outcomes = await Promise.all([low, high, low, high].map(create));
    expect(outcomes.toSorted()).toEqual(['done', 'etag-mismatch', 'etag-mismatch', 'etag-mismatch']);
    expect((await read(key))?.counts.toSorted()).toEqual([0, 1]);
  });

  test.each(FAULTS)('is set under its ETag as a whole or not at all: %s at any storage call', async (fault) => {
    const play = async ({ label, client }: FaultTrial) => {
      const key = newKey();
      await featureSeries.setCounts(engine, entity, key, both(1));
      const unlucky = engineThrough(client);
      const outcome = await outcomeOf(
        featureSeries.setCounts(unlucky, entity, key, both(2), { ifMatch: await etagOf(key) }),
      );
      const { counts } = (await read(key)) ?? {};
      if (outcome === 'done') expect(counts, label).toEqual([2, 2]);
      else expect([JSON.stringify(counts), outcome]).toEqual([expect.stringMatching(/\[1,1\]|\[2,2\]/), 'dead']);
    };
    await tryFaults(play, { faults: [fault], moreCallsThan: isWide ? 2 : 1 });
  });

  test.each(FAULTS)(
    'is deleted as a whole or not at all: %s at any storage call',
    { tags: ['slow'] },
    async (fault) => {
      for (const conditions of [{}, { ifMatch: 'current' }]) {
        const play = async ({ label, client }: FaultTrial) => {
          const key = newKey();
          await featureSeries.setCounts(engine, entity, key, both(1));
          const unlucky = engineThrough(client);
          const current = 'ifMatch' in conditions ? { ifMatch: await etagOf(key) } : {};
          const outcome = await outcomeOf(featureSeries.deleteSeries(unlucky, entity, key, current));
          const found = await read(key);
          // A delete without an ETag is sent once.
          const isSentOnce = !('ifMatch' in conditions) && ['server error', 'reset', 'reply lost'].includes(fault);
          expect(['done', isSentOnce ? 'storage-unavailable' : 'dead'], label).toContain(outcome);
          if (outcome === 'done' || found === undefined) expect(found).toBeUndefined();
          else expect(found.counts).toEqual([1, 1]);
          // A tombstone that a crash left changes nothing.
          if (found) return;
          expect(await outcomeOf(featureSeries.deleteSeries(engine, entity, key))).toBe('not-found');
          expect(await outcomeOf(featureSeries.setCounts(engine, entity, key, both(4), { ifMatch: '*' }))).toBe(
            'etag-mismatch',
          );
          expect(await featureSeries.increment(engine, entity, key, { slot: high, by: 3 })).toBe(3);
          expect((await read(key))?.counts).toEqual([0, 3]);
          await featureSeries.deleteSeries(engine, entity, key, { ifMatch: await etagOf(key) });
          expect(await read(key)).toBeUndefined();
        };
        await tryFaults(play, { faults: [fault], moreCallsThan: isWide ? 2 : 1 });
      }
    },
  );

  test('is not changed under an ETag if a count was added before the transaction, and loses no count', {
    tags: ['slow'],
  }, async () => {
    // The reads, and then the transaction.
    const commit = isWide ? 3 : 2;
    for (const at of samplePoints(isWide ? 5 : 3, 5))
      for (const slot of [low, high])
        for (const operation of ['set', 'delete'] as const) {
          const key = newKey();
          await featureSeries.setCounts(engine, entity, key, slots({ [low]: 1 }));
          const count = () => featureSeries.increment(engine, entity, key, { slot, by: 10 });
          const slow = engineThrough(interruptedHttpClient(at, count));
          const conditions = { ifMatch: await etagOf(key) };
          const change =
            operation === 'set'
              ? featureSeries.setCounts(slow, entity, key, slots({ [low]: 5 }), conditions)
              : featureSeries.deleteSeries(slow, entity, key, conditions);
          expect(await outcomeOf(change), `${operation}, call ${at}`).toBe(at <= commit ? 'etag-mismatch' : 'done');
          const added = slot === low ? [10, 0] : [0, 10];
          const before = slot === low ? [11, 0] : [1, 10];
          // A set has no further calls, so nothing was added.
          const after = operation === 'set' ? [5, 0] : added;
          expect((await read(key))?.counts).toEqual(at <= commit ? before : after);
        }
  });
});
