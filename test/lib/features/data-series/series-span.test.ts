import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineModel, defineSeries } from '../../../../lib/define.ts';
import { readSpan, spanKeyFields } from '../../../../lib/features/data-series/series-span.ts';
import { engineCore } from '../../../kit/engine.ts';
import { featureSeries } from '../../../kit/features.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { slots } from '../../../slots.ts';
import { testStorage } from '../../../storage.ts';

const access = { read: ['r'], write: ['r'] };
const hours = { name: 'hour', first: 0, last: 23 };
const perDay = { field: 'day', per: 'day' } as const;
const schema = z.object({ site: z.string(), gate: z.string(), day: z.iso.date() });
const { list } = defineModel({
  roles: ['r'],
  operatorRole: 'r',
  entities: [
    defineSeries('adjacent', {
      schema,
      table: 'adjacent',
      key: { partition: '{site}', row: '{gate}_{day}' },
      slots: hours,
      span: perDay,
      access,
    }),
    defineSeries('apart', {
      schema,
      table: 'apart',
      key: { partition: '{site}_{day}', row: '{gate}' },
      slots: hours,
      span: perDay,
      access,
    }),
    ...(
      [
        ['before', '{day}_{gate}'],
        ['twice', '{day}_{gate}_{day}'],
        ['ended', '{gate}_{day}_end'],
      ] as const
    ).map(([name, row]) =>
      defineSeries(name, {
        schema,
        table: name,
        key: { partition: '{site}', row },
        slots: hours,
        span: perDay,
        access,
      }),
    ),
    defineSeries('wide', {
      schema: z.object({ site: z.string(), year: z.int32().min(0).max(9999) }),
      table: 'wide',
      key: { partition: '{site}', row: '{year:4}' },
      slots: { name: 'day', first: 1, last: 366, perRow: 183 },
      span: { field: 'year', per: 'year' },
      access,
    }),
  ],
});
const [adjacent, apart, before, twice, ended, wide] = list;
if (!adjacent || !apart || !before || !twice || !ended || !wide) throw new Error('The model has six series.');

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
const engine = engineCore.createEngine(storage);
beforeAll(async () => {
  for (const { table } of list) await storageTables.createTable(storage, table);
});

async function measure<Result>(work: () => Promise<Result>): Promise<[result: Result, transactions: number]> {
  return storageAccounts
    .measureCost(async (cost) => [await work(), cost.transactions] as const)
    .then(([result, count]) => [result, count]);
}

describe('a span of a series', () => {
  test.each([
    ['adjacent', adjacent, 1],
    ['apart', apart, 2],
    ['with the day before another field', before, 2],
    ['with the day twice', twice, 2],
    ['with a text after the day', ended, 2],
  ] as const)('of hours takes the fewest transactions if its rows are %s', async (_name, entity, cost) => {
    const of = (gate: string, day: string) => ({ site: 'a', gate, day });
    await featureSeries.setCounts(engine, entity, of('1', '2026-11-19'), slots({ 9: 1, 10: 2, 23: 3 }));
    await featureSeries.setCounts(engine, entity, of('1', '2026-11-20'), slots({ 0: 4, 10: 5, 11: 6 }));
    for (const gate of ['0', '10', '2'])
      await featureSeries.setCounts(engine, entity, of(gate, '2026-11-19'), slots({ 10: 99 }));
    const bounds = { from: '2026-11-19T10', to: '2026-11-20T10' };
    const [points, spent] = await measure(() => readSpan(engine, entity, { site: 'a', gate: '1' }, bounds));
    expect(spent).toBe(cost);
    expect(points).toHaveLength(25);
    expect(points.filter(({ count }) => count > 0)).toEqual([
      { at: '2026-11-19T10:00:00Z', count: 2 },
      { at: '2026-11-19T23:00:00Z', count: 3 },
      { at: '2026-11-20T00:00:00Z', count: 4 },
      { at: '2026-11-20T10:00:00Z', count: 5 },
    ]);
    const [day, ofDay] = await measure(() =>
      readSpan(engine, entity, { site: 'a', gate: '1' }, { from: '2026-11-20', to: '2026-11-20' }),
    );
    expect([day.length, ofDay]).toEqual([24, 1]);
  });

  test('of days crosses leap years, and reads only the rows of its days', async () => {
    const set = (year: number, day: number, count: number) =>
      featureSeries.setCounts(engine, wide, { site: 'a', year }, slots({ [day]: count }));
    await set(2024, 366, 7);
    await set(2025, 1, 8);
    await set(2025, 365, 9);
    // A count that no day of the year has, which a client may have stored.
    await set(2025, 366, 1_000);
    await set(2026, 1, 10);
    const read = (from: string, to: string) => measure(() => readSpan(engine, wide, { site: 'a' }, { from, to }));
    const [turn, one] = await read('2024-12-30', '2025-01-02');
    expect([turn.map(({ count }) => count), one]).toEqual([[0, 7, 8, 0], 1]);
    const [year] = await read('2025-12-31', '2026-01-01');
    expect(year).toEqual([
      { at: '2025-12-31T00:00:00Z', count: 9 },
      { at: '2026-01-01T00:00:00Z', count: 10 },
    ]);
    const [all] = await read('2024', '2026');
    expect([all.length, all.reduce((sum, { count }) => sum + count, 0)]).toEqual([366 + 365 + 365, 34]);
  });

  test('is zeros if nothing was counted', async () => {
    const points = await readSpan(
      engine,
      apart,
      { site: 'z', gate: '1' },
      { from: '2026-11-19T10', to: '2026-11-19T12' },
    );
    expect(points.map(({ count }) => count)).toEqual([0, 0, 0]);
  });

  test('is bounded in rows and counts, and read from storage only within the bounds', async () => {
    const read = (from: string, to: string) =>
      measure(() => readSpan(engine, apart, { site: 'a', gate: '1' }, { from, to }).catch((error: unknown) => error));
    const [refused, spent] = await read('2025-01-01', '2026-12-31');
    expect(refused).toMatchObject({
      code: 'invalid-input',
      field: 'from',
      accepted: 'a span of at most the counts of 400 rows',
    });
    expect(spent).toBe(0);
    expect((await read('0000', '9999'))[0]).toMatchObject({ code: 'invalid-input' });
    expect((await read('2026-11-20', '2026-11-19'))[0]).toMatchObject({
      code: 'invalid-input',
      field: 'from',
    });
    expect((await read('now', '2026'))[0]).toMatchObject({ code: 'invalid-input', field: 'from' });
    expect((await read('2026', ''))[0]).toMatchObject({ code: 'invalid-input', field: 'to' });
    expect((await read('2026-11-20', '2026-11-20'))[1]).toBe(1);
    // 400 days.
    const most = { from: '2025-01-01', to: '2026-02-04' };
    expect(await readSpan(engine, adjacent, { site: 'a', gate: '1' }, most)).toHaveLength(400 * 24);
    const more = readSpan(engine, adjacent, { site: 'a', gate: '1' }, { ...most, to: '2026-02-05' });
    await expect(more).rejects.toMatchObject({ code: 'invalid-input', field: 'from' });
  });
});

test('the key of a span has every field but the period', () => {
  expect([adjacent, apart, twice, wide].map(spanKeyFields)).toEqual([
    ['site', 'gate'],
    ['site', 'gate'],
    ['site', 'gate'],
    ['site'],
  ]);
});
