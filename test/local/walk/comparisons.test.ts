import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, defineModel, defineSeries, total } from '../../../lib/define.ts';
import { compareAll } from '../../../local/walk/compare-answers.ts';
import { compareArchives } from '../../../local/walk/compare-periods.ts';
import { type Step, takeStep } from '../../../local/walk/steps.ts';
import { formatFailure, walk } from '../../../local/walk/walk.ts';
import { prepareWorlds, type WalkWorld } from '../../../local/walk/walk-world.ts';
import { linkedEntities } from '../../fixtures/deploy.ts';
import { baseValues } from '../../kit/base.ts';
import { testStorage } from '../../storage.ts';

/** The comparisons of the walk with counts of series, archived periods and totals: each finds what is wrong. */

const access = { read: ['reader'], write: ['reader'] };
const name = z.string().min(1);
const day = z.iso.date();
const calls = defineSeries('calls', {
  schema: z.object({ desk: name, day }),
  table: 'calls',
  key: { partition: '{desk}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  span: { field: 'day', per: 'day' },
  access,
});
const steps = defineSeries('steps', {
  schema: z.object({ person: name, day }),
  table: 'steps',
  key: { partition: '{person}', row: '{day}' },
  slots: { name: 'minute', first: 0, last: 1_439, overflow: 'blob' },
  period: { per: 'month', field: 'day', keep: 12 },
  access,
});
const visits = defineEntity('visits', {
  schema: z.object({
    door: name,
    at: z.iso.datetime(),
    note: name.optional(),
    badge: name.optional(),
    day: day.optional(),
  }),
  table: 'visits',
  key: { partition: '{door}', row: '{at}' },
  period: { per: 'day', field: 'at', keep: 3, archiveTo: 'blob' },
  large: ['note'],
  encrypted: ['badge'],
  derived: { day: ({ at }) => String(at).slice(0, 10) },
  access: { ...access, restricted: { badge: ['reader'] } },
});
const sales = defineEntity('sales', {
  schema: z.object({
    shop: name,
    saleId: z.string().regex(/^[0-9]{1,3}$/),
    soldOn: day,
    amount: z.number(),
    by: name.optional(),
  }),
  table: 'sales',
  key: { partition: '{shop}', row: '{saleId}' },
  totals: {
    perMonth: total({
      table: 'salespermonth',
      partition: '{shop}',
      row: '{soldOn.month}',
      sum: ['amount'],
      max: ['amount'],
    }),
    bySeller: total({ table: 'salesbyseller', partition: 'all_{saleId%4}', row: '{by}', min: ['soldOn'] }),
  },
  access,
});
const roles = { roles: ['reader'], operatorRole: 'reader' } as const;
const model = defineModel({ ...roles, entities: [calls, steps, visits, sales] });

const connectionString = testStorage(import.meta.url);
const folder = await mkdtemp(join(inject('folder'), 'walk-test-'));
let open: () => Promise<WalkWorld>;
beforeAll(async () => {
  open = await prepareWorlds(model, { connectionString, folder });
});

async function take(world: WalkWorld, ...all: readonly Step[]) {
  const taken = [];
  for (const step of all) taken.push({ ...step, outcome: await takeStep(world, step) });
  expect(taken.map(({ outcome }) => outcome)).toEqual(all.map(() => 'ok'));
  return { steps: taken, isInOrder: true };
}

test.each([calls, steps, visits, sales])(
  'every answer agrees after random writes of $name',
  { tags: ['slow'] },
  async (entity) => {
    const only = defineModel({ ...roles, entities: [entity as DeclaredEntity] });
    const options = { connectionString, folder, seed: Number(inject('seed')), writes: 100 };
    const { failure, outcomes } = await walk(only, options);
    expect(failure && formatFailure(failure)).toBeUndefined();
    expect([...outcomes.keys()].some((outcome) => outcome.endsWith('ok'))).toBe(true);
  },
);

const yesterday = new Date(Date.now() - baseValues.DAY_MS).toISOString();
const key = { desk: 'Front', day: yesterday.slice(0, 10) };

test('a count that no step has counted is found, also in a span', async () => {
  const world = await open();
  const history = await take(
    world,
    { of: 'calls', do: 'set', key, values: { 1: 4, 23: 2 } },
    { of: 'calls', do: 'increment', key, values: { 1: 3 } },
  );
  expect(await compareAll(world, model.list, history)).toEqual([]);
  await world.store.calls.increment(key, 1, 1);
  const wrong = '{"1":8,"23":2}, but should be {"1":7,"23":2}, by the index of the slot';
  expect(await compareAll(world, model.list, history)).toEqual([
    `calls, counts of ${JSON.stringify(key)}: ${wrong}`,
    `calls, span of {"desk":"Front"}, ${JSON.stringify(key)}: ${wrong}`,
  ]);
});

test('a count that several writers may have set in any order is not compared', async () => {
  const world = await open();
  const { steps: taken } = await take(world, { of: 'calls', do: 'set', key, values: { 1: 4 } });
  await world.store.calls.set(key, { 1: 5 });
  expect(await compareAll(world, model.list, { steps: taken, isInOrder: false })).toEqual([]);
});

test('an archive that lacks an entity, or has another one, is found', async () => {
  const world = await open();
  const visit = (door: string) => ({ door, at: yesterday, note: 'n'.repeat(40_000), badge: '7' });
  await take(world, { of: 'visits', do: 'create', values: visit('North') });
  const { values } = await world.store.visits.get({ door: 'North', at: yesterday });
  const south = { ...values, door: 'South' };
  const different = await compareArchives(world, linkedEntities(model).visits, [south]);
  expect(different).toEqual([
    expect.stringMatching(/^visits: no archive has .*South/),
    expect.stringMatching(/^visits: an archive has .*North.*, which is not stored$/),
  ]);
});

test('a total that differs from its entities is found, by its group and in a range', async () => {
  const world = await open();
  const sale = { shop: 'Bern', saleId: '1', soldOn: '2026-03-05', amount: 1.1, by: 'ann' };
  await take(world, { of: 'sales', do: 'create', values: sale });
  expect(await compareAll(world, model.list)).toEqual([]);
  const rows = world.engine.storage.table('salespermonth');
  for await (const { partitionKey = '', rowKey = '', Amounts } of rows.listEntities())
    if (Amounts)
      await rows.updateEntity({ partitionKey, rowKey, Amounts: String(Amounts).replace('"count":1', '"count":2') });
  const differences = await compareAll(world, model.list);
  for (const what of ['group', 'range from {"shop":"Bern"}'])
    expect(differences).toContainEqual(expect.stringContaining(`sales, ${what} of the totals perMonth: `));
});
