import pMap from 'p-map';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, total } from '../../../../lib/define.ts';
import { checkGroup, readTotals } from '../../../../lib/features/totals/read-totals.ts';
import { defineKeys } from '../../../kit/define.ts';
import { engineCore } from '../../../kit/engine.ts';
import { storageAccounts, storageRows, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

test('a page of many buckets has fewer groups, and no group is lost', { tags: ['slow'] }, async () => {
  const things = defineEntity('things', {
    schema: z.object({ id: z.string().min(1), day: z.string().min(1) }),
    table: 'things',
    key: { partition: '{id}', row: 'thing' },
    totals: { perDay: total({ table: 'thingsperday', partition: 'all_{id%256}', row: '{day}' }) },
    access: { read: ['reader'], write: ['reader'] },
  });
  const [entity] = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [things] }).list;
  const declared = entity?.totals.perDay;
  if (!entity || !declared) throw new Error('The total is declared.');
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  await storageTables.createTable(storage, 'thingsperday');
  const days = Array.from({ length: 33 }, (_, at) => `day${String(at).padStart(2, '0')}`);
  const properties = { EntityType: 'total', Amounts: JSON.stringify({ count: 1, sum: {}, min: {}, max: {} }) };
  await pMap(
    defineKeys.buildKeys(declared.partition, {}),
    (partition) => {
      const rows = days.map((day) => defineKeys.buildKey(declared.totalRow, { day }));
      const actions = rows.map((row) => ({ kind: 'insert', row, properties }) as const);
      return storageRows.submit(storage, { table: 'thingsperday', partition, actions });
    },
    { concurrency: 8 },
  );
  const engine = engineCore.createEngine(storage);
  const first = await readTotals(engine, entity, declared, {}, { top: 1_000 });
  expect(first.items.length).toBeLessThanOrEqual(8_000 / 256);
  const rest = await readTotals(engine, entity, declared, {}, { top: 1_000, after: first.next });
  const all = [...first.items, ...rest.items];
  expect(all).toEqual(days.map((day) => expect.objectContaining({ group: { day }, count: 256 })));
  expect(rest.next).toBeUndefined();
});

test('the totals of a range are added up over buckets, in order and page by page, without groups that are empty', async () => {
  const things = defineEntity('tallies', {
    schema: z.object({ id: z.string().min(1), day: z.string().min(1), size: z.number().optional() }),
    table: 'tallies',
    key: { partition: '{id}', row: 'tally' },
    totals: {
      perDay: total({
        table: 'talliesperday',
        partition: 'all_{id%3}',
        row: '{day}',
        sum: ['size'],
        min: ['size'],
        max: ['size'],
      }),
    },
    access: { read: ['reader'], write: ['reader'] },
  });
  const [entity] = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [things] }).list;
  const declared = entity?.totals.perDay;
  if (!entity || !declared) throw new Error('The total is declared.');
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  await storageTables.createTable(storage, 'talliesperday');
  const put = async (bucket: number, day: string, amounts: object) => {
    const partition = defineKeys.buildKeys(declared.partition, {})[bucket] ?? '';
    const properties = { EntityType: 'total', Amounts: JSON.stringify(amounts) };
    const action = { kind: 'insert', row: defineKeys.buildKey(declared.totalRow, { day }), properties } as const;
    await storageRows.submit(storage, { table: 'talliesperday', partition, actions: [action] });
  };
  const of = (count: number, size: number) => ({ count, sum: { size: `${size}` }, min: { size }, max: { size } });
  await put(2, 'd1', of(1, 5));
  await put(0, 'd2', of(2, 3));
  await put(1, 'd2', of(1, -4));
  await put(2, 'd2', { count: 1, sum: { size: '1' }, min: {}, max: {} });
  await put(0, 'd3', of(0, 0));
  await put(1, 'd4', of(3, 1));
  await put(0, 'd5', of(1, 2));
  const engine = engineCore.createEngine(storage);
  const read = async (top: number, bounds = {}) => {
    const pages: string[][] = [];
    for (let after: { row: string } | undefined, isFirst = true; isFirst || after; isFirst = false) {
      const page = await readTotals(engine, entity, declared, {}, { top, after, ...bounds });
      pages.push(
        page.items.map((one) =>
          JSON.stringify([(one.group as { day: string }).day, one.count, one.sum, one.min, one.max]),
        ),
      );
      after = page.next;
    }
    return pages;
  };
  const all = [
    '["d1",1,{"size":5},{"size":5},{"size":5}]',
    '["d2",4,{"size":0},{"size":-4},{"size":3}]',
    '["d4",3,{"size":1},{"size":1},{"size":1}]',
    '["d5",1,{"size":2},{"size":2},{"size":2}]',
  ];
  expect(await read(100)).toEqual([all]);
  expect(await read(5)).toEqual([all]);
  for (const top of [1, 2, 3]) {
    const pages = await read(top);
    expect(pages.flat()).toEqual(all);
    expect(Math.max(...pages.map((page) => page.length))).toBe(Math.min(top, 2));
  }
  expect(await read(100, { from: 'd2', to: 'd4' })).toEqual([all.slice(1, 3)]);
});

test('a group is named by whole periods of its unit, and by the values of its other fields', () => {
  const declared = total({ table: 'perday', partition: '{place}_{at.month}', row: '{size}_{on.year}' });
  const fields = ['place', 'at', 'size', 'on'];
  const given = { place: 'Bern', at: '2026-11', size: '3', on: '2026' };
  const validated: (readonly string[])[] = [];
  const check = (values: object, some = fields) =>
    checkGroup(declared, { ...values }, some, (others) => {
      validated.push(others);
      return { place: 'Bern', size: 3 };
    });
  expect(check(given)).toEqual({ place: 'Bern', size: 3, at: '2026-11', on: '2026' });
  expect(check({ ...given, on: 'x' }, ['place', 'at'])).toEqual({ place: 'Bern', size: 3, at: '2026-11' });
  expect(validated).toEqual([['place', 'size'], ['place']]);
  const refuse = (values: object, field: string, accepted: string) =>
    expect(() => check({ ...given, ...values })).toThrow(
      expect.objectContaining({ code: 'invalid-input', field, accepted }),
    );
  refuse({ at: '2026-11-20' }, 'at', 'a month such as 2026-11');
  refuse({ at: '2026' }, 'at', 'a month such as 2026-11');
  refuse({ on: '2026-11' }, 'on', 'a year such as 2026');
});
