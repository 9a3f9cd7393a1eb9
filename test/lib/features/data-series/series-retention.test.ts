import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineModel, defineSeries } from '../../../../lib/define.ts';
import { costOf } from '../../../cost-of.ts';
import { engineCore } from '../../../kit/engine.ts';
import { featureSeries, featureUpkeep } from '../../../kit/features.ts';
import { operationsModel } from '../../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { slots } from '../../../slots.ts';
import { testStorage } from '../../../storage.ts';

const access = { read: ['r'], write: ['r'] };
const { list } = defineModel({
  roles: ['r'],
  operatorRole: 'r',
  entities: [
    defineSeries('hours', {
      schema: z.object({ site: z.string(), day: z.iso.date() }),
      table: 'hours',
      key: { partition: '{site}', row: '{day}' },
      slots: { name: 'hour', first: 0, last: 23 },
      span: { field: 'day', per: 'day' },
      period: { per: 'month', field: 'day', keep: 2 },
      access,
    }),
    defineSeries('years', {
      schema: z.object({ site: z.string(), year: z.int32().min(1000).max(9999) }),
      table: 'years',
      key: { partition: '{site}', row: '{year:4}' },
      slots: { name: 'day', first: 1, last: 366, perRow: 183 },
      span: { field: 'year', per: 'year' },
      period: { per: 'year', field: 'year', keep: 1 },
      access,
    }),
  ],
});
const [hours, years] = list;
if (!hours || !years) throw new Error('The model has two series.');

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
let now = 0;
const engine = engineCore.createEngine(storage, { now: () => now });
beforeEach(async () => {
  now = Date.parse('2026-11-20T12:00:00Z');
  for (const table of await storageTables.listTables(storage, '')) await storageTables.dropTable(storage, table);
});

const one = (count: number) => slots({ 9: count });

describe('a series with a period', () => {
  test('is stored by month, and a month past retention is dropped as a whole', async () => {
    const at = (day: string) => ({ site: 'a', day });
    for (const day of ['2026-09-30', '2026-10-31', '2026-11-20', '2026-12-01'])
      await featureSeries.setCounts(engine, hours, at(day), one(1));
    expect(await storageTables.listTables(storage, 'hours')).toEqual([
      'hours202609',
      'hours202610',
      'hours202611',
      'hours202612',
    ]);
    expect(await featureSeries.increment(engine, hours, at('2026-10-31'), { slot: 9, by: 2 })).toBe(3);
    now = Date.parse('2026-12-01T00:05:00Z');
    expect((await featureUpkeep.rollPeriods(engine, hours)).dropped).toEqual(['hours202609']);
    await expect(featureSeries.readSeries(engine, hours, at('2026-09-30'))).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(featureSeries.deleteSeries(engine, hours, at('2026-09-30'))).rejects.toMatchObject({
      code: 'not-found',
    });
    expect((await featureSeries.readSeries(engine, hours, at('2026-10-31'))).counts[9]).toBe(3);
    await featureSeries.deleteSeries(engine, hours, at('2026-10-31'), { ifMatch: '*' });
    await expect(featureSeries.readSeries(engine, hours, at('2026-10-31'))).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  test('rejects counts of a period that is not kept, and creates no table for them', async () => {
    for (const day of ['2026-08-31', '2027-01-01']) {
      const refusal = { code: 'invalid-input', field: 'day' };
      const key = { site: 'a', day };
      await expect(featureSeries.setCounts(engine, hours, key, one(1))).rejects.toMatchObject(refusal);
      await expect(featureSeries.setCounts(engine, hours, key, one(1), { ifNoneMatch: '*' })).rejects.toMatchObject(
        refusal,
      );
      await expect(featureSeries.increment(engine, hours, key, { slot: 9, by: 1 })).rejects.toMatchObject(refusal);
    }
    expect(await storageTables.listTables(storage, '')).toEqual([]);
  });

  test('is created when the timer is late, also by an increment and under a condition', async () => {
    const at = (day: string) => ({ site: 'a', day });
    expect(await featureSeries.increment(engine, hours, at('2026-10-01'), { slot: 9, by: 2 })).toBe(2);
    await featureSeries.setCounts(engine, hours, at('2026-11-01'), one(3), { ifNoneMatch: '*' });
    expect((await featureSeries.readSeries(engine, hours, at('2026-11-01'))).counts[9]).toBe(3);
    expect(await costOf(() => featureSeries.increment(engine, hours, at('2026-10-01'), { slot: 9, by: 1 }))).toBe(2);
  });

  test('is charted with one query for each month, without the months that are not kept', async () => {
    for (const day of ['2026-10-30', '2026-10-31', '2026-11-01'])
      await featureSeries.setCounts(engine, hours, { site: 'a', day }, one(1));
    const read = (from: string, to: string) => featureSeries.readSpan(engine, hours, { site: 'a' }, { from, to });
    const total = async (from: string, to: string) => (await read(from, to)).reduce((sum, { count }) => sum + count, 0);
    expect(await total('2026-10-30', '2026-11-02')).toBe(3);
    expect(await costOf(() => read('2026-10-30', '2026-11-02'))).toBe(2);
    // Nine, ten and eleven of 2026; the table of September does not exist.
    expect(await costOf(() => read('2026-01', '2026-11'))).toBe(3);
    expect(await total('2026-01', '2026-11')).toBe(3);
  });

  test('may be of years, each of which has a table', async () => {
    for (const year of [2025, 2026])
      await featureSeries.setCounts(engine, years, { site: 'a', year }, slots({ 1: 1, 365: 2 }));
    expect(await storageTables.listTables(storage, 'years')).toEqual(['years2025', 'years2026']);
    const turn = await featureSeries.readSpan(engine, years, { site: 'a' }, { from: '2025-12-31', to: '2026-01-01' });
    expect(turn.map(({ count }) => count)).toEqual([2, 1]);
    expect(operationsModel.resourcesOf([years], now).tables).toEqual(
      expect.arrayContaining(['years2026', 'years2027']),
    );
    await expect(featureSeries.setCounts(engine, years, { site: 'a', year: 2024 }, one(1))).rejects.toMatchObject({
      code: 'invalid-input',
    });
  });
});
