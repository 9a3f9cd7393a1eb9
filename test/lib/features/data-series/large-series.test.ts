import type { HttpClient } from '@azure/core-rest-pipeline';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineModel, defineSeries, type Values } from '../../../../lib/index.ts';
import { collectAllOrphans } from '../../../collect-all-orphans.ts';
import { costOf } from '../../../cost-of.ts';
import { type FaultTrial, outcomeOf, tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { FAULTS, interruptedHttpClient } from '../../../faulty-http-client.ts';
import { baseValues } from '../../../kit/base.ts';
import { type Engine, engineCore, engineRead } from '../../../kit/engine.ts';
import { featureSeries } from '../../../kit/features.ts';
import type { Internal } from '../../../kit/internal.ts';
import { operationsCheck, operationsModel } from '../../../kit/operations.ts';
import { storageAccounts, storageBlobs, storageTables } from '../../../kit/storage.ts';
import { sampleRuns } from '../../../points.ts';
import { slots } from '../../../slots.ts';
import { testStorage } from '../../../storage.ts';
import { rowsOf } from '../../../world.ts';

const access = { read: ['r'], write: ['r'] };
const {
  list: [seconds],
} = defineModel({
  roles: ['r'],
  operatorRole: 'r',
  entities: [
    defineSeries('seconds', {
      schema: z.object({ site: z.string(), day: z.iso.date() }),
      table: 'seconds',
      key: { partition: '{site}', row: '{day}' },
      slots: { name: 'second', first: 0, last: 86_399, overflow: 'blob' },
      span: { field: 'day', per: 'day' },
      access,
    }),
  ],
});
if (!seconds) throw new Error('The model has a series.');

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
const engine = engineCore.createEngine(storage);
beforeAll(() => storageTables.provision(storage, operationsModel.resourcesOf([seconds], Date.now())));

/** As many counts as a row has. */
const FULL = 200;
const LAST = 86_399;
let counter = 0;
function newKey(): Values {
  counter += 1;
  return { site: `site${counter}`, day: '2026-11-20' };
}

const counts = (first: number, length: number, count = 1) =>
  new Map(Array.from({ length }, (_, index) => [first + index, count]));
const set = (key: Values, given: ReadonlyMap<number, number>) => featureSeries.setCounts(engine, seconds, key, given);
const add = (key: Values, slot: number, by = 1, by_: Engine = engine) =>
  featureSeries.increment(by_, seconds, key, { slot, by });
const read = async (key: Values) => (await featureSeries.readSeries(engine, seconds, key)).counts;
const total = async (key: Values) => (await read(key)).reduce((sum, count) => sum + count, 0);
const blobs = () => Array.fromAsync(storageBlobs.listContainer(storage, 'large'));
const engineThrough = (httpClient: HttpClient) =>
  engineCore.createEngine(storageAccounts.openStorage({ connectionString, httpClient }));
async function blobsOf({ site }: Values): Promise<{ named: string | undefined; stored: string[] }> {
  const row = (await rowsOf(storage, 'seconds')).find(({ partitionKey }) => partitionKey === site);
  const isOf = ({ metadata }: Internal['ListedBlob']) => metadata.partition === site;
  return { named: row?.CountsBlob as string | undefined, stored: (await blobs()).filter(isOf).map(({ name }) => name) };
}

describe('a series with more slots than its row holds', () => {
  test('is one row until its counts outgrow the row, and then the row and one blob', { tags: ['slow'] }, async () => {
    const key = newKey();
    expect(await costOf(() => set(key, counts(0, FULL - 1)))).toBe(2);
    expect(await costOf(() => add(key, LAST, 5))).toBe(2);
    expect(await blobsOf(key)).toEqual({ named: undefined, stored: [] });
    expect(await costOf(() => featureSeries.readSeries(engine, seconds, key))).toBe(1);
    // The row, the blob, the row.
    expect(await costOf(() => add(key, 40_000, 7))).toBe(3);
    const { named, stored } = await blobsOf(key);
    expect(stored).toEqual([named]);
    expect(await costOf(() => featureSeries.readSeries(engine, seconds, key))).toBe(2);
    const whole = await read(key);
    expect([whole.length, whole[0], whole[198], whole[199], whole[40_000], whole[LAST]]).toEqual([
      86_400, 1, 1, 0, 7, 5,
    ]);
    // A count of the blob is read once, and is then in the row.
    expect(await costOf(() => add(key, 40_000))).toBe(3);
    expect(await costOf(() => add(key, 40_000))).toBe(2);
    expect((await read(key))[40_000]).toBe(9);
    expect(await blobsOf(key)).toEqual({ named, stored });
    // The row, the old blob, the new blob, the row, the old blob.
    expect(await costOf(() => set(key, counts(1_000, FULL, 2)))).toBe(5);
    expect((await blobsOf(key)).stored).toEqual([(await blobsOf(key)).named]);
    expect(await total(key)).toBe(199 + 9 + 5 + 2 * FULL);
    expect(await costOf(() => set(key, counts(0, 86_400, 3)))).toBe(5);
    expect(await total(key)).toBe(3 * 86_400);
    // The row, the row, the blob, the row.
    expect(await costOf(() => featureSeries.deleteSeries(engine, seconds, key))).toBe(4);
    expect(await blobsOf(key)).toEqual({ named: undefined, stored: [] });
    await expect(read(key)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('has the counts of any sequence of changes', async () => {
    const slot = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: LAST }));
    const change = fc.oneof(
      fc.record({
        does: fc.constant('set' as const),
        slots: fc.array(slot, { minLength: 1, maxLength: 250 }),
        count: fc.nat(9),
      }),
      fc.record({
        does: fc.constant('add' as const),
        slots: fc.array(slot, { minLength: 1, maxLength: 3 }),
        count: fc.nat(9),
      }),
      fc.record({ does: fc.constant('delete' as const), slots: fc.constant([]), count: fc.constant(0) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
        const key = newKey();
        let expected = new Map<number, number>();
        for (const { does, slots, count } of changes) {
          if (does === 'set') await set(key, new Map(slots.map((one) => [one, count])));
          if (does === 'set') for (const one of slots) expected.set(one, count);
          if (does === 'delete') await outcomeOf(featureSeries.deleteSeries(engine, seconds, key));
          if (does === 'delete') expected = new Map();
          for (const one of does === 'add' ? slots : []) {
            expected.set(one, (expected.get(one) ?? 0) + count);
            expect(await add(key, one, count)).toBe(expected.get(one));
          }
        }
        const found = await read(key).catch(() => []);
        const there = found.flatMap((count, slot) => (count > 0 ? [[slot, count]] : []));
        expect(there).toEqual([...expected].filter(([, count]) => count > 0).sort(([one], [other]) => one - other));
        const { named, stored } = await blobsOf(key);
        expect(stored).toEqual(named === undefined ? [] : [named]);
      }),
      sampleRuns(25),
    );
  });

  test('counts every increment of several processes while it outgrows its row', { tags: ['slow'] }, async () => {
    const key = newKey();
    await set(key, counts(0, FULL - 5, 1));
    const processes = Array.from({ length: 4 }, () =>
      engineCore.createEngine(storageAccounts.openStorage({ connectionString }), { now: () => 0 }),
    );
    await Promise.all(
      processes.flatMap((one, index) =>
        Array.from({ length: 30 }, (_, nth) => add(key, nth % 3 === 0 ? 70_000 : 50_000 + 100 * index + nth, 1, one)),
      ),
    );
    expect(await total(key)).toBe(FULL - 5 + 120);
    expect((await read(key))[70_000]).toBe(40);
    const { named, stored } = await blobsOf(key);
    expect(stored).toEqual([named]);
  });

  test('is charted and has an ETag like any other', { tags: ['slow'] }, async () => {
    const key = newKey();
    await set(key, counts(0, 86_400, 1));
    await set(key, slots({ [LAST]: 4 }));
    const { etag } = await featureSeries.readSeries(engine, seconds, key);
    const points = await featureSeries.readSpan(
      engine,
      seconds,
      { site: key.site },
      { from: '2026-11-20T23:59:58', to: '2026-11-21T00:00:00' },
    );
    expect(points).toEqual([
      { at: '2026-11-20T23:59:58Z', count: 1 },
      { at: '2026-11-20T23:59:59Z', count: 4 },
      { at: '2026-11-21T00:00:00Z', count: 0 },
    ]);
    expect(
      await featureSeries.readSpan(engine, seconds, { site: key.site }, { from: '2026-11-20', to: '2026-11-20' }),
    ).toHaveLength(86_400);
    await add(key, 5);
    for (const change of [
      featureSeries.setCounts(engine, seconds, key, counts(0, 300), { ifMatch: etag }),
      featureSeries.deleteSeries(engine, seconds, key, { ifMatch: etag }),
    ])
      await expect(change).rejects.toMatchObject({ code: 'etag-mismatch' });
    expect(await total(key)).toBe(86_400 + 4);
  });
});

describe('a change that writes a new blob', () => {
  const CHANGES: readonly [name: string, calls: number, (engine: Engine, key: Values) => Promise<unknown>, number][] = [
    ['an increment', 5, (one, key) => featureSeries.increment(one, seconds, key, { slot: LAST, by: 1 }), 1],
    [
      'many counts',
      5,
      (one, key) => featureSeries.setCounts(one, seconds, key, new Map([[0, 11], ...counts(600, FULL, 0)])),
      10,
    ],
    ['a delete', 4, (one, key) => featureSeries.deleteSeries(one, seconds, key), -2 * FULL],
  ];
  /** A row that is full beside its blob, with 400 counts. */
  async function newFull(): Promise<Values> {
    const key = newKey();
    await set(key, counts(0, FULL + 1));
    await set(key, counts(201, FULL - 1));
    await set(key, slots({ 0: 1 }));
    return key;
  }

  test.each(CHANGES.flatMap((change) => FAULTS.map((fault) => [change[0], fault, change] as const)))(
    'by %s happens once or not at all: %s at any storage call',
    { tags: ['slow'] },
    async (_name, fault, [, calls, change, by]) => {
      const play = async ({ label, client }: FaultTrial) => {
        const key = await newFull();
        const outcome = await outcomeOf(change(engineThrough(client), key));
        const found = await total(key).catch(() => 0);
        expect(outcome === 'done' ? [2 * FULL + by] : [2 * FULL, 2 * FULL + by], `${label}: ${outcome}`).toContain(
          found,
        );
        expect(['done', 'dead']).toContain(outcome);
        const { named, stored } = await blobsOf(key);
        if (named !== undefined) expect(stored).toContain(named);
        // What a crash leaves is deleted by the timer, and nothing else.
        const later = engineCore.createEngine(storage, { now: () => Date.now() + 2 * baseValues.DAY_MS });
        await collectAllOrphans(later, [seconds]);
        expect((await blobsOf(key)).stored).toEqual(named === undefined ? [] : [named]);
        expect(await total(key).catch(() => 0)).toBe(found);
        expect(await add(key, LAST, 3)).toBe(found === 2 * FULL + 1 ? 4 : 3);
      };
      await tryFaults(play, { faults: [fault], moreCallsThan: calls - 1 });
    },
  );

  test.each(CHANGES)('by %s loses no other increment between its storage calls', async (name, calls, change, by) => {
    const set = async () => {
      const key = await newFull();
      return {
        act: (through: Engine) => change(through, key),
        interrupt: async () => {
          // The second increment writes a new blob, too.
          await add(key, 80_000, 100);
          await add(key, 80_001, 100);
        },
        check: async (label: string) => {
          const found = await total(key).catch(() => 0);
          // A delete removes them if they came first.
          expect(name === 'a delete' ? [0, 100, 200] : [2 * FULL + by + 200], label).toContain(found);
          const { named, stored } = await blobsOf(key);
          expect(stored).toEqual(named === undefined ? [] : [named]);
        },
      };
    };
    await tryInterruptions({ engineThrough }, set, { sides: ['before'], moreCallsThan: calls - 1 });
  });
});

test('a reader of a replaced blob reads the row again', async () => {
  const key = newKey();
  await set(key, counts(0, 300));
  const replace = () => set(key, counts(300, 300));
  const reader = engineThrough(interruptedHttpClient(2, replace));
  await expect(featureSeries.readSeries(reader, seconds, key)).rejects.toBeInstanceOf(engineRead.BlobGone);
  expect((await featureSeries.readSeries(reader, seconds, key)).counts.filter((count) => count > 0)).toHaveLength(600);
  // A writer does so itself.
  await set(key, counts(0, FULL));
  const writer = engineThrough(interruptedHttpClient(2, () => set(key, counts(1_000, 300))));
  expect(await add(key, 500, 2, writer)).toBe(3);
});

test('a lost blob is found, and the series can be deleted', async () => {
  const key = newKey();
  await set(key, counts(0, 300));
  const { named } = await blobsOf(key);
  await storageBlobs.deleteBlob(storage, { container: 'large', name: String(named) });
  const { findings } = await operationsCheck.verifyPage(engine, seconds, { top: 1_000, repair: true, patience: 0 });
  expect(findings).toMatchObject([{ kind: 'lost-blob', of: 'large', partition: key.site, repaired: false }]);
  await expect(add(key, 5)).rejects.toMatchObject({ code: 'needs-repair' });
  await featureSeries.deleteSeries(engine, seconds, key);
  await expect(read(key)).rejects.toMatchObject({ code: 'not-found' });
});

test('a row with a count of another type, with no blob of its own or at the key of another series is found', async () => {
  const table = storage.table('seconds');
  const check = async () => {
    const { findings } = await operationsCheck.verifyPage(engine, seconds, { top: 1_000, repair: true, patience: 0 });
    return findings.map(({ kind, partition, reason, repaired }) => [kind, partition, reason, repaired]);
  };
  const [text, number, blob] = [newKey(), newKey(), newKey()];
  await set(text, counts(0, 3));
  await set(number, counts(0, 300));
  await set(blob, counts(0, 300));
  expect(await check()).toEqual([]);
  const keysOf = ({ site, day }: Values) => ({ partitionKey: String(site), rowKey: String(day) });
  await table.updateEntity({ ...keysOf(text), Count001: 'lots' }, 'Merge');
  await table.updateEntity({ ...keysOf(number), CountsBlob: 5 }, 'Merge');
  const { etag: _, timestamp: __, ...row } = await table.getEntity(String(text.site), String(text.day));
  const copy = { ...keysOf(text), rowKey: '2026-11-21' };
  await table.createEntity({ ...row, ...copy, Count001: 1 });
  await table.updateEntity({ ...keysOf(blob), CountsBlob: String((await blobsOf(number)).stored[0]) }, 'Merge');
  const noBlob = 'The property CountsBlob names no blob of the row.';
  expect(await check()).toEqual([
    ['invalid', text.site, 'The property Count001 is not a count.', false],
    ['invalid', text.site, 'The fields of the key differ from the keys of the row.', false],
    ['invalid', number.site, noBlob, false],
    ['invalid', blob.site, noBlob, false],
  ]);
  for (const { partitionKey, rowKey } of [keysOf(text), copy, keysOf(number), keysOf(blob)])
    await table.deleteEntity(partitionKey, rowKey);
});
