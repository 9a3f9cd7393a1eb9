import { beforeAll, describe, expect, test } from 'vitest';
import { RowkeyError } from '../../../../lib/base/errors.ts';
import type { Values } from '../../../../lib/base/values.ts';
import type { Entity } from '../../../../lib/define/declaration/entity.ts';
import { createEngine } from '../../../../lib/engine/engine.ts';
import { deleteSeries, increment, readSeries, setCounts } from '../../../../lib/features/data-series/series-counts.ts';
import { createTable } from '../../../../lib/storage/provision.ts';
import { openStorage } from '../../../../lib/storage/storage.ts';
import { costOf } from '../../../cost-of.ts';
import { type FaultTrial, tryFaults } from '../../../fault-driver.ts';
import { FAULTS, interruptedHttpClient } from '../../../faulty-http-client.ts';
import { messagehours as hours, messageyears as years } from '../../../fixtures/model.ts';
import { samplePoints } from '../../../points.ts';
import { testStorage } from '../../../storage.ts';
import { rowsOf } from '../../../world.ts';

const connectionString = testStorage(import.meta.url);
const storage = openStorage({ connectionString });
const engine = createEngine(storage);
beforeAll(async () => {
  await createTable(storage, 'messagehours');
  await createTable(storage, 'messageyears');
});

let counter = 0;
const SERIES: readonly [name: string, entity: Entity, key: () => Values, slots: readonly [number, number]][] = [
  ['in one row', hours, () => ({ employeeId: nextId(), day: '2026-11-20' }), [0, 23]],
  ['in two rows', years, () => ({ employeeId: nextId(), year: 2026 }), [1, 366]],
];

function nextId(): string {
  counter += 1;
  return String(counter).padStart(6, '0');
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof RowkeyError ? error.code : 'crash'),
  );

describe.each(SERIES)('a series %s', (_name, entity, newKey, [low, high]) => {
  const both = (count: number) =>
    new Map([
      [low, count],
      [high, count],
    ]);
  const read = async (key: Values) => {
    const found = await readSeries(engine, entity, key).catch(() => undefined);
    return found && { etag: found.etag, counts: [found.counts.at(0), found.counts.at(-1)] };
  };
  const etagOf = async (key: Values) => String((await read(key))?.etag);
  const isWide = entity === years;

  test('has an ETag that changes with each count, and only then', async () => {
    const key = newKey();
    const seen = new Set<string>();
    for (const change of [
      () => setCounts(engine, entity, key, new Map([[low, 1]])),
      () => setCounts(engine, entity, key, new Map([[high, 1]])),
      () => increment(engine, entity, key, { slot: high, by: 1 }),
      () => setCounts(engine, entity, key, both(3), { ifMatch: '*' }),
    ]) {
      await change();
      seen.add(await etagOf(key));
      seen.add(await etagOf(key));
    }
    expect(seen.size).toBe(4);
  });

  test('is changed and deleted only under the ETag that If-Match names, and otherwise stays as it is', async () => {
    const key = newKey();
    await setCounts(engine, entity, key, both(1));
    const stale = await etagOf(key);
    await increment(engine, entity, key, { slot: high, by: 1 });
    const before = await read(key);
    for (const conditions of [{ ifMatch: stale }, { ifNoneMatch: '*' }, { ifNoneMatch: String(before?.etag) }]) {
      const refusal = { code: 'etag-mismatch', etag: before?.etag };
      await expect(setCounts(engine, entity, key, both(9), conditions)).rejects.toMatchObject(refusal);
      await expect(deleteSeries(engine, entity, key, conditions)).rejects.toMatchObject(refusal);
    }
    expect(await read(key)).toEqual(before);
    const ifMatch = String(before?.etag);
    expect(await costOf(() => setCounts(engine, entity, key, both(5), { ifMatch }))).toBe(isWide ? 3 : 2);
    expect((await read(key))?.counts).toEqual([5, 5]);
    await expect(deleteSeries(engine, entity, key, { ifMatch })).rejects.toMatchObject({ code: 'etag-mismatch' });
    const current = await etagOf(key);
    expect(await costOf(() => deleteSeries(engine, entity, key, { ifMatch: current }))).toBe(isWide ? 5 : 3);
    await expect(readSeries(engine, entity, key)).rejects.toMatchObject({ code: 'not-found' });
    await expect(deleteSeries(engine, entity, key, { ifMatch: '*' })).rejects.toMatchObject({ code: 'not-found' });
    await expect(setCounts(engine, entity, key, both(1), { ifMatch: '*' })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    expect(await read(key)).toBeUndefined();
    const left = (await rowsOf(storage, entity.table)).filter(({ partitionKey }) => partitionKey === key.employeeId);
    expect(left).toEqual([]);
  });

  test('is created once by callers that require that it does not exist', async () => {
    const key = newKey();
    const create = (slot: number) => codeOf(setCounts(engine, entity, key, new Map([[slot, 1]]), { ifNoneMatch: '*' }));
    const outcomes = await Promise.all([low, high, low, high].map(create));
    expect(outcomes.toSorted()).toEqual(['done', 'etag-mismatch', 'etag-mismatch', 'etag-mismatch']);
    expect((await read(key))?.counts.toSorted()).toEqual([0, 1]);
  });

  test.each(FAULTS)('is set under its ETag as a whole or not at all: %s at any storage call', async (fault) => {
    const play = async ({ label, client }: FaultTrial) => {
      const key = newKey();
      await setCounts(engine, entity, key, both(1));
      const unlucky = createEngine(openStorage({ connectionString, httpClient: client }));
      const outcome = await codeOf(setCounts(unlucky, entity, key, both(2), { ifMatch: await etagOf(key) }));
      const { counts } = (await read(key)) ?? {};
      if (outcome === 'done') expect(counts, label).toEqual([2, 2]);
      else expect([JSON.stringify(counts), outcome]).toEqual([expect.stringMatching(/\[1,1\]|\[2,2\]/), 'crash']);
    };
    await tryFaults(play, { faults: [fault], moreCallsThan: isWide ? 2 : 1 });
  });

  test.each(FAULTS)('is deleted as a whole or not at all: %s at any storage call', async (fault) => {
    for (const conditions of [{}, { ifMatch: 'current' }]) {
      const play = async ({ label, client }: FaultTrial) => {
        const key = newKey();
        await setCounts(engine, entity, key, both(1));
        const unlucky = createEngine(openStorage({ connectionString, httpClient: client }));
        const current = 'ifMatch' in conditions ? { ifMatch: await etagOf(key) } : {};
        const outcome = await codeOf(deleteSeries(unlucky, entity, key, current));
        const found = await read(key);
        // A delete without an ETag is sent once.
        const isSentOnce = !('ifMatch' in conditions) && ['server error', 'reset', 'reply lost'].includes(fault);
        expect(['done', isSentOnce ? 'storage-unavailable' : 'crash'], label).toContain(outcome);
        if (outcome === 'done' || found === undefined) expect(found).toBeUndefined();
        else expect(found.counts).toEqual([1, 1]);
        // A tombstone that a crash left changes nothing.
        if (found) return;
        expect(await codeOf(deleteSeries(engine, entity, key))).toBe('not-found');
        expect(await codeOf(setCounts(engine, entity, key, both(4), { ifMatch: '*' }))).toBe('etag-mismatch');
        expect(await increment(engine, entity, key, { slot: high, by: 3 })).toBe(3);
        expect((await read(key))?.counts).toEqual([0, 3]);
        await deleteSeries(engine, entity, key, { ifMatch: await etagOf(key) });
        expect(await read(key)).toBeUndefined();
      };
      await tryFaults(play, { faults: [fault], moreCallsThan: isWide ? 2 : 1 });
    }
  });

  test('is not changed under an ETag if a count was added before the transaction, and loses no count', async () => {
    // The reads, and then the transaction.
    const commit = isWide ? 3 : 2;
    for (const at of samplePoints(isWide ? 5 : 3, 5))
      for (const slot of [low, high])
        for (const operation of ['set', 'delete'] as const) {
          const key = newKey();
          await setCounts(engine, entity, key, new Map([[low, 1]]));
          const count = () => increment(engine, entity, key, { slot, by: 10 });
          const slow = createEngine(openStorage({ connectionString, httpClient: interruptedHttpClient(at, count) }));
          const conditions = { ifMatch: await etagOf(key) };
          const change =
            operation === 'set'
              ? setCounts(slow, entity, key, new Map([[low, 5]]), conditions)
              : deleteSeries(slow, entity, key, conditions);
          expect(await codeOf(change), `${operation}, call ${at}`).toBe(at <= commit ? 'etag-mismatch' : 'done');
          const added = slot === low ? [10, 0] : [0, 10];
          const before = slot === low ? [11, 0] : [1, 10];
          // A set has no further calls, so nothing was added.
          const after = operation === 'set' ? [5, 0] : added;
          expect((await read(key))?.counts).toEqual(at <= commit ? before : after);
        }
  });
});
