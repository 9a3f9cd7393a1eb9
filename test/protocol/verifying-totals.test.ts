import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, type Total, total, type Values } from '../../lib/index.ts';
import { allPages } from '../all-pages.ts';
import { sales as entity } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { operationsCheck, type VerifyPosition } from '../kit/operations.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../world.ts';

const world = await openWorld(import.meta.url);
beforeAll(async () => {
  for (const [at, soldOn] of ['2026-01-05', '2026-01-20', '2026-02-03'].entries())
    await engineWrite.createEntity(world.engine, entity, {
      branch: 'Bern',
      saleId: `S00000${at}`,
      soldOn,
      amount: at + 0.5,
    });
});

async function check(repair: boolean, only?: string) {
  const pages = await allPages((position: VerifyPosition | undefined) =>
    operationsCheck.verifyPage(world.engine, entity, { position, top: 100, repair, only, patience: 10 }),
  );
  return pages.flatMap(({ findings }) =>
    findings.map((finding) => baseValues.pick({ ...finding }, ['kind', 'of', 'row', 'repaired'])),
  );
}

const table = (name: string) => world.storage.table(name);
const totalOf = (row: string) => table('salesbymonth').getEntity<{ Amounts: string }>('Bern', row);

describe('the consistency check of totals', () => {
  test('finds nothing in totals that agree', async () => {
    expect(await check(false)).toEqual([]);
  });

  test.each<[string, () => Promise<unknown>, Values[]]>([
    [
      'a wrong total',
      async () => {
        const { Amounts } = await totalOf('t_2026-01');
        const wrong = JSON.stringify({ ...JSON.parse(Amounts), count: 7 });
        await table('salesbymonth').updateEntity(
          { partitionKey: 'Bern', rowKey: 't_2026-01', Amounts: wrong },
          'Merge',
        );
      },
      [{ kind: 'wrong-total', row: 't_2026-01' }],
    ],
    [
      'an unreadable total',
      () => table('salesbymonth').updateEntity({ partitionKey: 'Bern', rowKey: 't_2026-02', Amounts: '?' }, 'Merge'),
      [{ kind: 'wrong-total', row: 't_2026-02' }],
    ],
    [
      'a missing total',
      () => table('salesbymonth').deleteEntity('Bern', 't_2026-01'),
      [{ kind: 'wrong-total', row: 't_2026-01' }],
    ],
    [
      'a missing contribution',
      () => table('salesbymonth').deleteEntity('Bern', 'c_2026-02_Bern_S000002'),
      [{ kind: 'missing', row: 'c_2026-02_Bern_S000002' }],
    ],
    [
      'a stale contribution',
      () =>
        table('salesbymonth').updateEntity(
          { partitionKey: 'Bern', rowKey: 'c_2026-01_Bern_S000000', Values: '{"amount":99}' },
          'Merge',
        ),
      [{ kind: 'stale', row: 'c_2026-01_Bern_S000000' }],
    ],
    [
      'a contribution without an entity',
      async () => {
        const row = await table('salesbymonth').getEntity('Bern', 'c_2026-01_Bern_S000000');
        const { etag: _, timestamp: __, ...properties } = row;
        const rowKey = 'c_2026-01_Bern_S999999';
        await table('salesbymonth').createEntity({ ...properties, partitionKey: 'Bern', rowKey, SourceRow: 'S999999' });
      },
      [{ kind: 'orphaned', row: 'c_2026-01_Bern_S999999' }],
    ],
    [
      'a total without contributions',
      () => table('salesbymonth').createEntity({ partitionKey: 'Bern', rowKey: 't_1999-01', EntityType: 'total' }),
      [{ kind: 'orphaned', row: 't_1999-01' }],
    ],
  ])('finds and repairs %s', { tags: ['slow'] }, async (_, damage, wanted) => {
    await damage();
    const found = await check(false);
    expect(found).toEqual(wanted.map((one) => ({ of: 'byMonth', repaired: false, ...one })));
    await check(true);
    expect(await check(false)).toEqual([]);
    await expectIndexesToAgree(world.storage, entity);
  });

  test.each([false, true])(
    'leaves a right total as it is, whatever contributions are beside it: %s',
    async (isLost) => {
      const right = await totalOf('t_2026-02');
      const row = await table('salesbymonth').getEntity('Bern', 'c_2026-02_Bern_S000002');
      const { etag: _, timestamp: __, ...properties } = row;
      for (const id of ['S999998', 'S999999'])
        await table('salesbymonth').createEntity({
          ...properties,
          rowKey: `c_2026-02_Bern_${id}`,
          SourceRow: id,
        } as never);
      if (isLost) await table('salesbymonth').deleteEntity('Bern', 'c_2026-02_Bern_S000002');
      const kinds = [...(isLost ? ['missing'] : []), 'orphaned', 'orphaned'];
      expect((await check(false)).map(({ kind }) => kind)).toEqual(kinds);
      expect((await check(true)).map(({ kind, repaired }) => [kind, repaired])).toEqual(
        kinds.map((kind) => [kind, true]),
      );
      expect((await totalOf('t_2026-02')).Amounts).toBe(right.Amounts);
      expect(await check(false)).toEqual([]);
      await expectIndexesToAgree(world.storage, entity);
    },
  );

  test('keeps a right total right in each step of the repair of a contribution that is too many', async () => {
    const { Amounts: right } = await totalOf('t_2026-02');
    const row = await table('salesbymonth').getEntity('Bern', 'c_2026-02_Bern_S000002');
    const { etag: _, timestamp: __, ...properties } = row;
    // Not the earliest and not the latest, which a delete looks for again.
    const Values = JSON.stringify({ ...JSON.parse(String(row.Values)), soldOn: '2026-02-04' });
    const rowKey = 'c_2026-02_Bern_S999997';
    await table('salesbymonth').createEntity({ ...properties, Values, rowKey, SourceRow: 'S999997' } as never);
    let repaired = 0;
    for (let position: VerifyPosition | undefined, isFirst = true; isFirst || position; isFirst = false) {
      const page = await operationsCheck.verifyPage(world.engine, entity, {
        position,
        top: 1,
        repair: true,
        patience: 0,
      });
      repaired += page.findings.filter((finding) => finding.repaired).length;
      expect((await totalOf('t_2026-02')).Amounts).toBe(right);
      position = page.next;
    }
    expect(repaired).toBe(1);
  });

  test.each(['a create', 'a delete'])(
    'repairs a total with the contribution of %s that waits in the queue',
    async (what) => {
      const saleId = what === 'a create' ? 'S000020' : 'S000021';
      const sale = { branch: 'Bern', saleId, soldOn: '2026-02-11', amount: 4 };
      const contribution = `c_2026-02_Bern_${saleId}`;
      const { Amounts: without } = await totalOf('t_2026-02');
      await engineWrite.createEntity(world.engine, entity, sale);
      const { Amounts: withIt } = await totalOf('t_2026-02');
      const { etag: _, timestamp: __, ...stored } = await table('salesbymonth').getEntity('Bern', contribution);
      // The rows as they are before the message arrives.
      const setTotal = (Amounts: string) =>
        table('salesbymonth').updateEntity({ partitionKey: 'Bern', rowKey: 't_2026-02', Amounts }, 'Merge');
      if (what === 'a create') {
        await table('salesbymonth').deleteEntity('Bern', contribution);
        await setTotal(without);
      } else {
        await engineWrite.deleteEntity(world.engine, entity, sale);
        await table('salesbymonth').createEntity(stored as never);
        await setTotal(withIt);
      }
      const right = what === 'a create' ? withIt : without;
      // The check is interrupted before it reaches the total.
      let position: VerifyPosition | undefined;
      for (let found = 0; found === 0; ) {
        const page = await operationsCheck.verifyPage(world.engine, entity, {
          position,
          top: 1,
          repair: 'safe',
          patience: 0,
        });
        found = page.findings.filter(({ row, repaired }) => row === contribution && repaired).length;
        position = page.next;
        if (!position) break;
      }
      expect(position).toBeDefined();
      expect(JSON.parse((await totalOf('t_2026-02')).Amounts)).toEqual(JSON.parse(right));
      if (what === 'a create') await engineWrite.deleteEntity(world.engine, entity, sale);
      await expectIndexesToAgree(world.storage, entity);
    },
  );

  test('corrects the total of an entity that was deleted by hand, in one run', async () => {
    const sale = { branch: 'Bern', saleId: 'S000009', soldOn: '2026-02-10', amount: 4 };
    await engineWrite.createEntity(world.engine, entity, sale);
    await engineWrite.createEntity(world.engine, entity, { ...sale, saleId: 'S000010', soldOn: '2027-01-01' });
    await world.settle();
    for (const id of ['S000009', 'S000010']) await table('sales').deleteEntity('Bern', id);
    await check(true);
    expect(await check(false)).toEqual([]);
    await expectIndexesToAgree(world.storage, entity);
  });

  test('reports a total under a key that no group has', async () => {
    const row = await totalOf('t_2026-02');
    await table('salesbymonth').createEntity({
      partitionKey: 'Bern',
      rowKey: 't_x',
      EntityType: 'total',
      Amounts: row.Amounts,
    });
    expect(await check(true)).toEqual([{ kind: 'orphaned', of: 'byMonth', row: 't_x', repaired: false }]);
    await table('salesbymonth').deleteEntity('Bern', 't_x');
  });

  test('a build adds a contribution to a total that is the sum of the others', async () => {
    const right = await totalOf('t_2026-01');
    await table('salesbymonth').deleteEntity('Bern', 'c_2026-01_Bern_S000001');
    await check(true, 'byMonth');
    expect((await totalOf('t_2026-01')).Amounts).toBe(right.Amounts);
    expect(await check(false)).toEqual([]);
  });

  test('builds totals that are declared later, and builds them again without a change', async () => {
    for (const { partitionKey, rowKey } of await rowsOf(world.storage, 'salesbymonth'))
      await table('salesbymonth').deleteEntity(String(partitionKey), String(rowKey));
    expect(await check(true, 'byMonth')).toHaveLength(3);
    expect(await check(true, 'byMonth')).toEqual([]);
    const month = { branch: 'Bern', soldOn: '2026-01' };
    expect(await featureUpkeep.readTotal(world.engine, entity, entity.totals.byMonth as Total, month)).toMatchObject({
      count: 2,
    });
    await expectIndexesToAgree(world.storage, entity);
  });
});

const bill = {
  schema: z.object({
    shop: z.string(),
    billId: z.string(),
    day: z.iso.date(),
    sum: z.number(),
    secret: z.iso.date(),
    at: z.iso.datetime().optional(),
    tags: z.array(z.string()).max(5),
    marks: z.array(z.string()).max(5),
  }),
  table: 'bills',
  key: { partition: '{shop}', row: '{billId}' },
  access: { read: ['hr'], write: ['hr'] },
} as const;
const load = (totals: Record<string, Total>, more: object = {}) =>
  defineModel({
    roles: ['hr'],
    operatorRole: 'hr',
    entities: [defineEntity('bills', { ...bill, ...more, totals } as never)],
  });
const named = (options: Partial<Parameters<typeof total>[0]>) => ({
  days: total({ table: 'billsperday', partition: '{shop}', row: '{day}', ...options }),
});

test.each<[string, Record<string, Total>, object, string]>([
  ['a text that is added up', named({ sum: ['shop'] }), {}, 'which is not a number'],
  ['a text as an extreme', named({ min: ['shop'] }), {}, 'which is not a number, a date or an instant'],
  ['the table of the entity', named({ table: 'bills' }), {}, 'a table of their own'],
  ['the table of other totals', { ...named({}), more: named({}).days }, {}, 'a table of their own'],
  ['several lists', named({ partition: '{tags[]}', row: '{marks[]}' }), {}, 'several lists (tags, marks)'],
  [
    'many fields',
    named({ sum: Array(20).fill('sum'), min: ['sum'], max: Array(30).fill('sum') }),
    {},
    'have 51 sums and extremes',
  ],
  ['a number as an instant', named({ max: ['tags'] }), {}, 'the least or greatest "tags"'],
  ['the table of its archive', named({ table: 'formerbills' }), { archive: { table: 'formerbills' } }, 'other rows'],
  [
    'the table of an index',
    named({ table: 'billindex' }),
    { indexes: { all: interPartitionIndex({ table: 'billindex', partition: 'all', row: '{billId}' }) } },
    'other rows',
  ],
  ['an encrypted field', named({ sum: ['sum'] }), { encrypted: ['sum'] }, 'of which storage has only the ciphertext'],
  ['a field of a group of split', named({ max: ['secret'] }), { split: { more: ['secret'] } }, 'of a group of split'],
  ['an instant, newest first', named({ row: '{at~}' }), {}, 'as an instant, newest first'],
  ['a hash in the row key', named({ row: '{billId#}' }), {}, 'hashes and buckets in the partition key only'],
  ['a field only as a hash', named({ partition: '{billId#}' }), {}, 'only as a hash'],
  ['a field twice', named({ partition: '{day.month}', appends: true }), {}, 'twice in their key. Remove one'],
  ['a period of a text', named({ row: '{shop.day}' }), {}, 'which has no day'],
  [
    'a period in a key',
    {},
    { key: { partition: '{shop}', row: '{day.month}_{billId}' } },
    'only totals take the month',
  ],
  ['a table for each period', named({}), { period: { per: 'day', field: 'billId', keep: 1 } }, 'maintained totals'],
])('a model with totals is rejected for %s', (_, totals, more, why) => {
  expect(() => load(totals, more)).toThrow(why);
});

test('a model with totals is accepted', () => {
  expect(() => load(named({ sum: ['sum'], min: ['day'], partition: 'all_{billId%8}' }))).not.toThrow();
  expect(() => load(named({ sum: Array(50).fill('sum'), partition: '{tags[]}' }))).not.toThrow();
  expect(() => load(named({ partition: '{billId#}', row: '{shop}_{billId}' }))).not.toThrow();
  expect(() => load(named({ min: ['day', 'sum'], max: ['day'], partition: '{tags[]}', row: '{shop}' }))).not.toThrow();
});
