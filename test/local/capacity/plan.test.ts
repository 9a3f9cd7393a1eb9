import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../lib/define.ts';
import { CAPACITY_PAGE, COSTS_PAGE, updateCosts, updatePlans } from '../../../local/capacity/capacity-page.ts';
import { costOfEntity } from '../../../local/capacity/entity-cost.ts';
import { format, formatDollars, planCapacity } from '../../../local/capacity/plan.ts';
import { readPublished } from '../../../local/capacity/published.ts';
import { deployedApp } from '../../../local/instance/deployed-app.ts';

const published = await readPublished();
const assumed = { bytes: 1_000, readCpu: 2, writeCpu: 10, utilization: 0.5, memory: 2 };

const things = defineEntity('things', {
  schema: z.object({ id: z.string().min(1), name: z.string().min(1), day: z.string().min(1) }),
  table: 'things',
  key: { partition: '{id}', row: 'thing' },
  indexes: {
    inOrder: interPartitionIndex({ table: 'thinglist', partition: 'all', row: '{id}', unique: true }),
    day: interPartitionIndex({ table: 'thingsbyday', partition: 'all_{id%4}', row: '{day}_{id}', copies: 'keys' }),
    hash: interPartitionIndex({ table: 'thingsbyname', partition: '{name#}', row: '{name}', unique: true }),
    beside: intraPartitionIndex({ row: 'name_{name}' }),
    list: indexEntity({ table: 'thingnames', partition: '{name}', row: 'ids', holds: '{id}' }),
  },
  access: { read: ['reader'], write: ['reader'] },
});
const plain = defineEntity('plain', {
  schema: z.object({ id: z.string().min(1) }),
  table: 'plain',
  key: { partition: '{id#}', row: '{id}' },
  access: { read: ['reader'], write: ['reader'] },
});
const { list } = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [things, plain] });
const [entity, small] = list as [(typeof list)[number], (typeof list)[number]];

test('counts the calls and the partitions of each table', () => {
  const { tables, queues, rows } = costOfEntity(entity);
  // The transaction, a copy, two unique rows and a list of two calls, the entity again; the intent twice.
  expect([tables, queues]).toEqual([9, 2]);
  expect(rows.map(({ table, partitions, rows: count }) => [table, partitions, count])).toEqual([
    ['things', undefined, 2],
    ['thinglist', 1, 1],
    ['thingsbyday', 4, 1],
    ['thingsbyname', 256, 1],
    ['thingnames', undefined, 1],
  ]);
  expect(costOfEntity(small)).toMatchObject({ tables: 1, queues: 0, rows: [{ partitions: 256 }] });
});

test('a backup costs its journal, a scan each day, and the parts that have changed', () => {
  const load = { entity: small, count: 1_024_000, reads: 0, writes: 0 };
  const costsOf = (backup: number, writes: number) =>
    planCapacity([{ ...load, writes }], { ...assumed, backup }, published).costs;
  const ofBackup = (backup: number, writes: number) =>
    costsOf(backup, writes).filter(({ what }) => /backup|snapshots/.test(what));
  const { tableRequests, blobWrites, blobGigabyte } = published.prices;
  expect(ofBackup(0, 1)).toEqual([]);
  expect(costsOf(0, 1)).toEqual(planCapacity([{ ...load, writes: 1 }], assumed, published).costs);
  // Nothing changes: 1,024 reads a day, and 1.024 GB once.
  const [journal, scans, kept] = ofBackup(35, 0).map(({ amount }) => amount);
  expect(journal).toBe(0);
  expect(scans).toBeCloseTo((1_024 * (365 / 12) * tableRequests.value) / 10_000, 10);
  expect(kept).toBeCloseTo(1.024 * blobGigabyte.value, 10);
  // 86,400 writes a day change all of the 1,000 parts, which are kept for 70 days; 1,200 bytes for each in the journal.
  const [appends, changed, all] = ofBackup(35, 1).map(({ amount }) => amount);
  expect(appends).toBeCloseTo((2_628_000 * blobWrites.value) / 10_000, 10);
  expect((changed ?? 0) - (scans ?? 0)).toBeCloseTo((1_000 * (365 / 12) * blobWrites.value) / 10_000, 10);
  expect(all).toBeCloseTo((1.024 * 71 + 0.0864 * 35 * 1.2) * blobGigabyte.value, 8);
});

test('names the limit that is met first', () => {
  const load = { entity, count: 1e6, reads: 100, writes: 500 };
  const plan = planCapacity([load], assumed, published);
  // 500 writes of two calls to one partition, of 2,000; 500 of 2,000 messages; 6,100 of 20,000 requests.
  expect(plan.limits[0]).toMatchObject({ what: expect.stringContaining('thinglist'), used: 1_000, limit: 2_000 });
  expect(plan).toMatchObject({ accounts: 1, queues: 1, requests: { tables: 4_600, queues: 1_000, blobs: 500 } });
  const more = planCapacity([{ ...load, reads: 1_000, writes: 5_000 }], assumed, published);
  expect(more).toMatchObject({ accounts: 4, queues: 3 });
});

test('adds up the loads of several entities, and what they cost', () => {
  const loads = [
    { entity, count: 1e9, reads: 10, writes: 0 },
    { entity: small, count: 1e9, reads: 990, writes: 100 },
  ];
  const plan = planCapacity(loads, assumed, published);
  expect(plan.requests).toEqual({ tables: 1_100, queues: 0, blobs: 100 });
  // 2 ms of CPU for each of 1,000 reads and 10 ms for each of 100 writes, at half of a CPU each.
  expect(plan.instances).toBe(6);
  // Per thing: 2 rows and 2 copies of 1,000 bytes, 2 rows of 300 bytes; per small one 1,000 bytes.
  expect(plan.gigabytes).toBeCloseTo(4_000 + 600 + 1_000);
  const amounts = Object.fromEntries(plan.costs.map(({ what, amount }) => [what, amount]));
  expect(amounts['requests to tables']).toBeCloseTo((1_100 * 730 * 3_600 * 0.00036) / 10_000);
  const executions = 1_100 * 730 * 3_600 + plan.timers.runs;
  expect(amounts[`${format(executions)} executions`]).toBeCloseTo((executions / 1e6) * 0.4);
  expect(amounts['free grant of the subscription for memory and executions']).toBeCloseTo(-0.1 - 2.6);
});

test('needs more instances if each has a part of a core, and always one queue', () => {
  const load = { entity: small, count: 1, reads: 1_000, writes: 0 };
  const instances = (memory: number) => planCapacity([load], { ...assumed, memory }, published).instances;
  expect([0.5, 2, 4].map(instances)).toEqual([16, 4, 4]);
  expect(planCapacity([{ ...load, reads: 0 }], assumed, published)).toMatchObject({ instances: 1, queues: 1 });
});

const costOf = (reads: number, writes: number, memory = 2) => {
  const { costs } = planCapacity([{ entity, count: 1, reads, writes }], { ...assumed, memory }, published);
  return costs.reduce((sum, { amount }) => sum + amount, 0);
};

test('costs nothing while only timers run, and a second of an instance for each rare request', () => {
  const idle = planCapacity([{ entity, count: 1, reads: 0, writes: 0 }], assumed, published);
  // A timer each minute, and some each hour and each day.
  expect(idle.timers.runs).toBeGreaterThan(730 * 60);
  expect(idle.timers.runs).toBeLessThan(730 * 70);
  expect(costOf(0, 0)).toBeCloseTo(0, 5);
  const rare = planCapacity([{ entity, count: 1, reads: 0.01, writes: 0 }], assumed, published);
  expect(rare.busy).toBeCloseTo(0.01, 3);
  // Two gigabytes for a second, a hundredth of the time, with the timers and without what is free.
  const gigabyteSeconds = 2 * (26_280 + idle.timers.runs) - 100_000;
  expect(costOf(0.01, 0)).toBeCloseTo(gigabyteSeconds * 0.000026, 1);
});

test('bills the queue function for each create whose entries are left to it, on an instance of its own', () => {
  const table = { table: 'laterlist', partition: '{id}', row: 'later' } as const;
  const [later] = defineModel({
    roles: ['reader'],
    operatorRole: 'reader',
    entities: [
      defineEntity('later', {
        schema: z.object({ id: z.string().min(1) }),
        table: 'later',
        key: { partition: '{id}', row: 'later' },
        indexes: { inOrder: interPartitionIndex({ ...table, settle: 'queue' }) },
        access: { read: ['reader'], write: ['reader'] },
      }),
    ],
  }).list as [typeof entity];
  const plan = planCapacity([{ entity: later, count: 1, reads: 0, writes: 0.01 }], assumed, published);
  expect(plan.busy).toBeCloseTo(0.02, 3);
  const executions = 2 * 0.01 * 730 * 3_600 + plan.timers.runs;
  expect(plan.costs.map(({ what }) => what)).toContain(`${format(executions)} executions`);
});

test('costs more for more requests, without a step but for one more instance, up to instances that work all the time', {
  tags: ['slow'],
}, () => {
  const rates = Array.from({ length: 400 }, (_, step) => 10 ** (-4 + step / 50));
  const instance = 2 * 730 * 3_600 * 0.000026;
  for (const [step, rate] of rates.entries()) {
    const [less, more] = [costOf(rates[step - 1] ?? 0, 0), costOf(rate, 0)];
    expect(more, `${rate}`).toBeGreaterThanOrEqual(less);
    // A rate is 4.7 % above the one before. One instance serves 250 requests a second.
    expect(more - less, `${rate}`).toBeLessThan(0.05 * more + (rate < 200 ? 0.2 : instance));
  }
  const { busy, instances } = planCapacity([{ entity, count: 1, reads: 4_000, writes: 0 }], assumed, published);
  expect(instances).toBe(16);
  expect(busy).toBeCloseTo(instances, 6);
});

test('the pages that name costs agree with the plan', async () => {
  const root = new URL('../../../', import.meta.url);
  const read = (page: string) => readFile(new URL(page, root), 'utf8');
  const { timers } = planCapacity([], assumed, published);
  expect(await read('docs/reference/infrastructure.md')).toContain(
    `${format(timers.runs)} runs of timers, of at least one second each, most of \`poison\`: $${formatDollars(timers.amount)} at 2 GB`,
  );
  expect(await read('docs/capacity.md')).toContain(`The timers of the app run ${format(timers.runs)} times a month`);
});

test('the plans of docs/capacity.md are those of the model: run npm run capacity -- --write', async ({ skip }) => {
  if (!deployedApp.model.list.some(({ name }) => name === 'employees')) skip('The example pack directory is needed.');
  const page = await readFile(new URL(`../../../${CAPACITY_PAGE}`, import.meta.url), 'utf8');
  expect(page.match(/<!-- capacity: .* -->/g)).toHaveLength(2);
  expect(await updatePlans(page)).toBe(page);
});

test('the costs of docs/costs.md are those of the model: run npm run capacity -- --write', async () => {
  const page = await readFile(new URL(`../../../${COSTS_PAGE}`, import.meta.url), 'utf8');
  expect(page).toMatch(/<!-- costs -->\n\n\| A month \|/);
  expect(await updateCosts(page)).toBe(page);
});

test('every published figure has a source and a date', () => {
  for (const figure of [...Object.values(published.targets), ...Object.values(published.prices)]) {
    expect(new URL(figure.source).protocol).toBe('https:');
    expect(String(figure.asOf)).toMatch(/^20\d\d/);
  }
});
