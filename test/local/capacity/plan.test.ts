import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../lib/define/indexes.ts';
import { defineModel } from '../../../lib/define-model.ts';
import { costOfEntity } from '../../../local/capacity/entity-cost.ts';
import { planCapacity } from '../../../local/capacity/plan.ts';
import { readPublished } from '../../../local/capacity/published.ts';

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
  expect(amounts.executions).toBeCloseTo(((1_100 * 730 * 3_600 - 250_000) / 1e6) * 0.4);
});

test('needs more instances if each has a part of a core, and always one queue', () => {
  const load = { entity: small, count: 1, reads: 1_000, writes: 0 };
  const instances = (memory: number) => planCapacity([load], { ...assumed, memory }, published).instances;
  expect([0.5, 2, 4].map(instances)).toEqual([16, 4, 4]);
  expect(planCapacity([{ ...load, reads: 0 }], assumed, published)).toMatchObject({ instances: 1, queues: 1 });
});

test('every published figure has a source and a date', () => {
  for (const figure of [...Object.values(published.targets), ...Object.values(published.prices)]) {
    expect(new URL(figure.source).protocol).toBe('https:');
    expect(String(figure.asOf)).toMatch(/^20\d\d/);
  }
});
