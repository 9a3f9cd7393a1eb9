import { expect, test } from 'vitest';
import { messageyears as entity } from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import { featureSeries } from '../../../kit/features.ts';
import { operationsCheck } from '../../../kit/operations.ts';
import { openWorld } from '../../../world.ts';

/** A series of two rows. A count that no row has is 0, so a lost row must not be read as zeros. */

const world = await openWorld(import.meta.url);
const { engine } = world;
const table = world.storage.table(entity.table);
let year = 2000;

const write = {
  'set in both rows': (key: object) =>
    featureSeries.setCounts(engine, entity, { ...key }, new Map([1, 2, 300].map((day) => [day, 5]))),
  'set in the second row only': (key: object) =>
    featureSeries.setCounts(engine, entity, { ...key }, new Map([[300, 5]])),
  'set under an ETag': (key: object) =>
    featureSeries.setCounts(engine, entity, { ...key }, new Map([[300, 5]]), { ifNoneMatch: '*' }),
  'incremented in the second row': (key: object) =>
    featureSeries.increment(engine, entity, { ...key }, { slot: 300, by: 5 }),
};

const isLost = (error: unknown) => baseValues.hasCode(error, 'needs-repair');

async function check(repair: boolean) {
  const { findings } = await operationsCheck.verifyPage(engine, entity, { top: 100, repair, patience: 0 });
  return findings.map(({ kind, row, repaired }) => [kind, row, repaired]);
}

test.each(Object.entries(write).flatMap(([how, by]) => ['', '_2'].map((row) => [how, row, by] as const)))(
  'a series that was %s is not read without its row "%s"',
  async (_, suffix, by) => {
    year += 1;
    const key = { employeeId: '000123', year };
    await by(key);
    expect((await featureSeries.readSeries(engine, entity, key)).counts[299]).toBe(5);
    expect(await check(false)).toEqual([]);
    const lost = `${year}${suffix}`;
    await table.deleteEntity('000123', lost);
    await expect(featureSeries.readSeries(engine, entity, key)).rejects.toSatisfy(isLost);
    const at = suffix === '' ? `${year}-01` : `${year}-10`;
    const span = featureSeries.readSpan(engine, entity, { employeeId: '000123' }, { from: at, to: at });
    // Of the first row, a span reads no other row.
    await (suffix === '' ? span : expect(span).rejects.toSatisfy(isLost));
    expect(await check(false)).toEqual([['missing', lost, false]]);
    expect(await check(true)).toEqual([['missing', lost, true]]);
    expect(await check(false)).toEqual([]);
    expect((await featureSeries.readSeries(engine, entity, key)).counts[299]).toBe(suffix === '' ? 5 : 0);
    await table.deleteEntity('000123', `${year}${suffix === '' ? '_2' : ''}`);
  },
);

test('a row that a client wrote, or an earlier release, has no marks', async () => {
  await table.createEntity({ partitionKey: '000123', rowKey: '1990_2', EntityType: entity.name, Count300: 4 });
  expect((await featureSeries.readSeries(engine, entity, { employeeId: '000123', year: 1990 })).counts[299]).toBe(4);
  expect(await check(false)).toEqual([]);
});

test('an increment does not mark a first row that it does not write', async () => {
  const key = { employeeId: '000123', year: 1991 };
  await table.createEntity({ partitionKey: '000123', rowKey: '1991_2', EntityType: entity.name, Count300: 4 });
  expect(await featureSeries.increment(engine, entity, key, { slot: 300, by: 1 })).toBe(5);
  expect((await featureSeries.readSeries(engine, entity, key)).counts[299]).toBe(5);
});

test('an increment leaves the repair of a lost first row as it is', async () => {
  const key = { employeeId: '000123', year: 1992 };
  await featureSeries.increment(engine, entity, key, { slot: 300, by: 5 });
  await table.deleteEntity('000123', '1992');
  expect(await check(true)).toEqual([['missing', '1992', true]]);
  await featureSeries.increment(engine, entity, key, { slot: 300, by: 1 });
  expect((await featureSeries.readSeries(engine, entity, key)).counts[299]).toBe(6);
});
