import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineSeries } from '../../../../lib/define/define-series.ts';
import { createEngine } from '../../../../lib/engine/engine.ts';
import { deleteSeries, increment, readSeries, setCounts } from '../../../../lib/features/data-series/series-counts.ts';
import { createTable } from '../../../../lib/storage/provision.ts';
import { openStorage } from '../../../../lib/storage/storage.ts';
import { costOf } from '../../../cost-of.ts';
import { faultyHttpClient } from '../../../faulty-http-client.ts';
import { messagehours as hours, messageyears as years } from '../../../fixtures/model.ts';
import { testStorage } from '../../../storage.ts';
import { rowsOf } from '../../../world.ts';

const connectionString = testStorage(import.meta.url);
const storage = openStorage({ connectionString });
const engine = createEngine(storage);
beforeAll(async () => {
  await createTable(storage, 'messagehours');
  await createTable(storage, 'messageyears');
});

describe('a data series', () => {
  test('is set by one merge and read by one get', async () => {
    const key = { employeeId: '000001', day: '2026-11-20' };
    await expect(readSeries(engine, hours, key)).rejects.toMatchObject({ code: 'not-found' });
    expect(await costOf(() => setCounts(engine, hours, key, new Map([[0, 5]])))).toBe(1);
    expect(await costOf(() => setCounts(engine, hours, key, new Map([[23, 7]])))).toBe(1);
    expect(await costOf(() => readSeries(engine, hours, key))).toBe(1);
    const { counts } = await readSeries(engine, hours, key);
    expect(counts).toEqual([5, ...Array.from({ length: 22 }, () => 0), 7]);
  });

  test('of several rows is deleted in one transaction or not at all', async () => {
    const key = { employeeId: '000011', year: 2026 };
    await setCounts(
      engine,
      years,
      key,
      new Map([
        [1, 5],
        [366, 7],
      ]),
    );
    // Two reads, then the transaction.
    expect(await costOf(() => deleteSeries(engine, years, key))).toBe(3);
    await expect(deleteSeries(engine, years, key)).rejects.toMatchObject({ code: 'not-found' });
    await setCounts(engine, years, key, new Map([[366, 7]]));
    await deleteSeries(engine, years, key);
    await expect(readSeries(engine, years, key)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('keeps every increment of fifty concurrent callers', async () => {
    const key = { employeeId: '000002', day: '2026-11-20' };
    // The constant clock keeps callers from timing out on a slow machine.
    const patient = createEngine(storage, { now: () => 0 });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => increment(patient, hours, key, { slot: 9, by: 1 })),
    );
    expect([...answers].sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect((await readSeries(engine, hours, key)).counts[9]).toBe(50);
  });

  test('costs no more for concurrent increments than for the same number of sequential ones', async () => {
    const key = { employeeId: '000009', day: '2026-11-20' };
    const count = () => increment(engine, hours, key, { slot: 9, by: 1 });
    expect(await costOf(() => Promise.all(Array.from({ length: 10 }, count)))).toBe(20);
  });

  test('counts an increment once, whichever reply is lost', async () => {
    const key = { employeeId: '000003', day: '2026-11-20' };
    for (let at = 1; at <= 6; at += 1) {
      const client = faultyHttpClient('reply lost', at);
      const unlucky = createEngine(openStorage({ connectionString, httpClient: client }));
      await Promise.all([
        increment(unlucky, hours, key, { slot: 1, by: 1 }),
        increment(engine, hours, key, { slot: 1, by: 1 }),
      ]);
      expect((await readSeries(engine, hours, key)).counts[1]).toBe(2 * at);
    }
  });

  test('rejects a count outside its range', async () => {
    const key = { employeeId: '000004', day: '2026-11-20' };
    await expect(increment(engine, hours, key, { slot: 1, by: -1 })).rejects.toMatchObject({ code: 'invalid-input' });
    await expect(readSeries(engine, hours, key)).rejects.toMatchObject({ code: 'not-found' });
  });
});

describe('a wide entity', () => {
  test('is stored in two rows within the limits, which are read concurrently and changed in one transaction', async () => {
    const key = { employeeId: '000001', year: 2024 };
    const every = new Map(Array.from({ length: 366 }, (_, index) => [index + 1, index * 2]));
    expect(await costOf(() => setCounts(engine, years, key, every))).toBe(1);
    const rows = await rowsOf(storage, 'messageyears');
    expect(rows.map(({ rowKey }) => rowKey)).toEqual(['2024', '2024_2']);
    for (const row of rows) expect(Object.keys(row).length).toBeLessThanOrEqual(252);
    expect(await costOf(() => readSeries(engine, years, key))).toBe(2);
    expect((await readSeries(engine, years, key)).counts).toEqual([...every.values()]);
    expect(await costOf(() => setCounts(engine, years, key, new Map([[366, 1]])))).toBe(1);
    expect(await increment(engine, years, key, { slot: 366, by: 4 })).toBe(5);
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
