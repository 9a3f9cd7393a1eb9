import { createDefaultHttpClient, type PipelineRequest } from '@azure/core-rest-pipeline';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type IndexPageOptions,
  readByCopies,
  readByList,
  readByLists,
} from '../../../../lib/engine/read/read-through-index.ts';
import {
  defineEntity,
  type IndexEntity,
  type InterPartitionIndex,
  type IntraPartitionIndex,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { allPages } from '../../../all-pages.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { defineCodec, defineKeys, definePlaces } from '../../../kit/define.ts';
import { engineWrite } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import { storageAccounts, storageRows } from '../../../kit/storage.ts';
import { openWorld } from '../../../world.ts';

const { items: stock } = deploy(
  defineEntity('items', {
    schema: z.object({
      shelf: z.string(),
      id: z.string().regex(/^\d+$/),
      name: z.string(),
      code: z.string().optional(),
    }),
    table: 'items',
    key: { partition: '{shelf}', row: '{id}' },
    indexes: {
      copies: intraPartitionIndex({ row: 'copy_{name}_{id}' }),
      references: intraPartitionIndex({ row: 'ref_{name}_{id}', copies: 'keys' }),
      remote: interPartitionIndex({ table: 'itemsbyname', partition: '{shelf}', row: '{name}_{id}', copies: 'keys' }),
      code: interPartitionIndex({ table: 'itemsbycode', partition: '{shelf}', row: '{code}', unique: true }),
      lists: indexEntity({ row: 'list_{name}', holds: '{id}' }),
    },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
/** The keys of the first index begin with a field, so rows of others lie among them. */
const { headless } = deploy(
  defineEntity('headless', {
    schema: z.object({ shelf: z.string(), id: z.string().regex(/^id\d$/), size: z.string().regex(/^[A-Z]$/) }),
    table: 'headless',
    key: { partition: '{shelf}', row: '{id}' },
    indexes: {
      size: intraPartitionIndex({ row: '{size}_{id}' }),
      other: intraPartitionIndex({ row: 'other_{size}_{id}' }),
    },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const copies = stock.indexes.copies as IntraPartitionIndex;
const references = stock.indexes.references as IntraPartitionIndex;
const remote = stock.indexes.remote as InterPartitionIndex;
const code = stock.indexes.code as InterPartitionIndex;
const lists = stock.indexes.lists as IndexEntity;

const { texts } = deploy(
  defineEntity('texts', {
    schema: z.object({ a: z.string(), b: z.string(), c: z.string(), text: z.string() }),
    table: 'texts',
    key: { partition: '{a}', row: '{b}' },
    indexes: {
      keys: intraPartitionIndex({ row: 'c_{c}_{b}', copies: 'keys' }),
      list: indexEntity({ row: 'list_{c}', holds: '{b}' }),
    },
    large: ['text'],
    access: { read: ['hr'], write: ['hr'] },
  }),
);

const world = await openWorld(import.meta.url, [stock, headless, texts]);

interface Put {
  readonly row: string;
  readonly properties: Record<string, unknown>;
}
async function put(table: string, partition: string, rows: readonly Put[]): Promise<void> {
  for (let at = 0; at < rows.length; at += 100)
    await storageRows.submit(world.storage, {
      table,
      partition,
      actions: rows.slice(at, at + 100).map((row) => ({ kind: 'upsert', ...row }) as const),
    });
}

/** Writes the rows of entities as the engine does, 100 at a time. */
async function stockWith(shelf: string, count: number): Promise<Values[]> {
  const all = Array.from({ length: count }, (_, at) => {
    const id = String(10_000 + at);
    return { shelf, id, name: `n${id}` };
  });
  const rows = all.flatMap((values) => [
    { row: values.id, properties: defineCodec.toProperties(stock, values, { WriteId: '1', Incarnation: '1' }) },
    {
      row: defineKeys.buildKey(copies.row, values),
      properties: definePlaces.copyProperties(stock, values, 'everything'),
    },
    {
      row: defineKeys.buildKey(references.row, values),
      properties: definePlaces.copyProperties(stock, values, 'keys'),
    },
    {
      row: defineKeys.buildKey(lists.row, values),
      properties: { EntityType: 'list', Members: JSON.stringify([values.id]) },
    },
  ]);
  await put('items', shelf, rows);
  return all;
}

type ReadPage = (options: IndexPageOptions) => Promise<Internal['Page']>;
const pagesOf = (read: ReadPage, options: IndexPageOptions) =>
  allPages((after: IndexPageOptions['after']) =>
    storageAccounts.measureCost(async (cost) => ({ ...(await read({ ...options, after })), cost: cost.transactions })),
  );

test('a page takes as many transactions with 5,000 entities as with 100', { tags: ['slow'] }, async () => {
  const costs: Record<string, number[]> = {};
  for (const [shelf, count] of [
    ['hundred', 100],
    ['thousands', 5_000],
  ] as const) {
    const all = await stockWith(shelf, count);
    const expected = all.slice(40, 60);
    const bounds = { from: 'n10040', to: 'n10059' };
    const reads = {
      copies: (options: IndexPageOptions) => readByCopies(world.engine, stock, copies, { shelf }, options),
      references: (options: IndexPageOptions) => readByCopies(world.engine, stock, references, { shelf }, options),
      lists: (options: IndexPageOptions) => readByLists(world.engine, stock, lists, { shelf }, options),
    };
    for (const [name, read] of Object.entries(reads)) {
      const pages = await pagesOf(read, { top: 10, ...bounds });
      expect(pages.flatMap(({ items }) => items)).toEqual(expected);
      costs[name] = [...(costs[name] ?? []), ...pages.map(({ cost }) => cost)];
      const [first] = await pagesOf((options) => read({ ...options, to: 'n10009' }), { top: 10 });
      expect(first?.items).toEqual(all.slice(0, 10));
    }
  }
  expect(costs).toEqual({ copies: [1, 1, 1, 1], references: [11, 11, 11, 11], lists: [11, 11, 11, 11] });
});

describe('stale entries', () => {
  const LOOKUPS = 256;
  const range = (shelf: string) => (options: IndexPageOptions) =>
    readByCopies(world.engine, stock, remote, { shelf }, options);

  test.each(['moved on', 'is gone'])(
    'of references whose entity %s are omitted, at most 256 on a page',
    { tags: ['slow'] },
    async (how) => {
      const shelf = `stale ${how}`;
      const live = { shelf, id: '99999', name: 'nz' };
      await engineWrite.createEntity(world.engine, stock, live);
      const now = { shelf, id: '1', name: 'a' };
      if (how === 'moved on') await engineWrite.createEntity(world.engine, stock, now);
      await put(
        'itemsbyname',
        shelf,
        Array.from({ length: 600 }, (_, at) => ({
          row: `n${10_000 + at}_1`,
          properties: definePlaces.copyProperties(stock, now, 'keys'),
        })),
      );
      const pages = await pagesOf(range(shelf), { top: 1_000, prefix: 'n' });
      expect(pages.map(({ items }) => items)).toEqual([[], [], [live]]);
      expect(Math.max(...pages.map(({ cost }) => cost))).toBeLessThanOrEqual(LOOKUPS + 1);
      expect((await pagesOf(range(shelf), { top: 1, prefix: 'nz' })).flatMap(({ items }) => items)).toEqual([live]);
    },
  );

  test('of lists are omitted, at most 256 on a page, and a page continues within a list', {
    tags: ['slow'],
  }, async () => {
    const shelf = 'stale lists';
    // The second one ends a page.
    const wanted = ['20000', '20254', '20400', '20599'].map((id) => ({ shelf, id, name: 'm' }));
    const members = Array.from({ length: 600 }, (_, at) => String(20_000 + at));
    await put('items', shelf, [
      { row: 'list_a', properties: { EntityType: 'list', Members: '[]' } },
      { row: 'list_l', properties: { EntityType: 'list', Members: JSON.stringify(['20000']) } },
      { row: 'list_m', properties: { EntityType: 'list', Members: JSON.stringify(members) } },
      ...wanted.map((values) => ({
        row: values.id,
        properties: defineCodec.toProperties(stock, values, { WriteId: '1', Incarnation: '1' }),
      })),
    ]);
    const read = (options: IndexPageOptions) => readByLists(world.engine, stock, lists, { shelf }, options);
    for (const top of [100, 1_000]) {
      const pages = await pagesOf(read, { top });
      expect(pages.flatMap(({ items }) => items)).toEqual(wanted);
      expect(Math.max(...pages.map(({ cost }) => cost))).toBeLessThanOrEqual(LOOKUPS + 1);
    }
  });

  test('of lists leave no page after the last member', async () => {
    const shelf = 'few members';
    const values = { shelf, id: '1', name: 'a' };
    await put('items', shelf, [
      { row: 'list_a', properties: { EntityType: 'list', Members: JSON.stringify(['1', '2']) } },
      { row: '1', properties: defineCodec.toProperties(stock, values, { WriteId: '1', Incarnation: '1' }) },
    ]);
    const read = readByLists(world.engine, stock, lists, { shelf }, { top: 10 });
    expect(await read).toEqual({ items: [values], next: undefined });
  });

  test('of a copy in the partition are omitted if the entity has changed since the row was read', async () => {
    const shelf = 'changed';
    const now = { shelf, id: '1', name: 'new' };
    await put('items', shelf, [
      { row: '1', properties: defineCodec.toProperties(stock, now, { WriteId: '1', Incarnation: '1' }) },
      { row: 'ref_old_1', properties: definePlaces.copyProperties(stock, now, 'keys') },
    ]);
    expect((await readByCopies(world.engine, stock, references, { shelf }, { top: 10 })).items).toEqual([]);
  });
});

test('a claim in a unique index is returned only if its entity is committed', async () => {
  const shelf = 'claims';
  const committed = { shelf, id: '1', name: 'x', code: 'a' };
  await engineWrite.createEntity(world.engine, stock, committed);
  const { partition: SourcePartition, row: SourceRow } = definePlaces.addressOf(stock, committed);
  const claim = (row: string, SourceRow: string) => ({
    row,
    properties: {
      EntityType: definePlaces.CLAIM,
      SourcePartition,
      SourceRow,
      Confirmed: false,
      Claim: '1',
      ClaimExpires: '9999',
    },
  });
  await put('itemsbycode', shelf, [claim('a', SourceRow), claim('b', '2'), claim('c', SourceRow)]);
  const read = (options: IndexPageOptions) => readByCopies(world.engine, stock, code, { shelf }, options);
  expect((await read({ top: 10 })).items).toEqual([committed]);
  expect((await read({ top: 10, from: 'b' })).items).toEqual([]);
});

test.each(['everything', 'keys'] as const)(
  'another value with the same hash is not returned from %s',
  async (copies) => {
    const { hashed } = deploy(
      defineEntity('hashed', {
        schema: z.object({ shelf: z.string(), id: z.string(), name: z.string() }),
        table: 'hashed',
        key: { partition: '{shelf}', row: '{id}' },
        indexes: {
          name: interPartitionIndex({ table: `hashed${copies}`, partition: '{name#}', row: '{shelf}_{id}', copies }),
        },
        access: { read: ['hr'], write: ['hr'] },
      }),
    );
    const { engine } = await openWorld(import.meta.url, [hashed]);
    const index = hashed.indexes.name as InterPartitionIndex;
    const partition = (name: string) => defineKeys.buildKey(index.remote.partition, { name });
    const names = Array.from({ length: 1_000 }, (_, at) => `name ${at}`);
    const other = names.find((name, at) => at > 0 && partition(name) === partition('name 0')) as string;
    const wanted = { shelf: copies, id: '1', name: 'name 0' };
    for (const values of [wanted, { shelf: copies, id: '2', name: other }])
      await engineWrite.createEntity(engine, hashed, values);
    for (const given of [{ name: 'name 0' }, { name: 'name 0', shelf: copies }])
      expect((await readByCopies(engine, hashed, index, given, { top: 10 })).items).toEqual([wanted]);
  },
);

test('entities whose partition key is a hash are listed in the order of another value', async () => {
  const { spread } = deploy(
    defineEntity('spread', {
      schema: z.object({ id: z.string(), name: z.string() }),
      table: 'spread',
      key: { partition: '{id#}', row: '{id}' },
      indexes: {
        name: interPartitionIndex({ table: 'spreadbyname', partition: 'all', row: '{name}_{id}', copies: 'keys' }),
      },
      access: { read: ['hr'], write: ['hr'] },
    }),
  );
  const { engine } = await openWorld(import.meta.url, [spread]);
  const all = ['c', 'a', 'b'].map((name, at) => ({ id: String(at), name }));
  for (const values of all) await engineWrite.createEntity(engine, spread, values);
  expect(new Set(all.map((values) => definePlaces.addressOf(spread, values).partition)).size).toBe(all.length);
  const { items } = await readByCopies(engine, spread, spread.indexes.name as InterPartitionIndex, {}, { top: 10 });
  expect(items.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
});

test('rows of other indexes within a range are not returned', async () => {
  const all = ['id1', 'id2', 'id3'].map((id, at) => ({ shelf: 's', id, size: 'ABC'[at] as string }));
  for (const values of all) await engineWrite.createEntity(world.engine, headless, values);
  const index = headless.indexes.size as IntraPartitionIndex;
  const pages = await pagesOf((options) => readByCopies(world.engine, headless, index, { shelf: 's' }, options), {
    top: 2,
  });
  expect(pages.flatMap(({ items }) => items)).toEqual(all);
});

test.each(['everything', 'keys'] as const)(
  'an entity whose key looks like the key of a copy of %s is not returned as a copy',
  { tags: ['slow'] },
  async (copies) => {
    const { things } = deploy(
      defineEntity('things', {
        schema: z.object({ a: z.string(), b: z.string(), c: z.string() }),
        table: 'things',
        key: { partition: '{a}', row: '{b}' },
        indexes: { c: intraPartitionIndex({ row: 'c_{c}_{b}', copies }) },
        access: { read: ['hr'], write: ['hr'] },
      }),
    );
    const { engine } = await openWorld(import.meta.url, [things]);
    const found = { a: copies, b: '2', c: 'x' };
    for (const values of [found, { a: copies, b: 'c_x_1', c: 'another' }])
      await engineWrite.createEntity(engine, things, values);
    const index = things.indexes.c as IntraPartitionIndex;
    const { items } = await readByCopies(engine, things, index, { a: copies, c: 'x' }, { top: 10 });
    expect(items).toEqual([found]);
  },
);

describe.each(['list', 'keys'] as const)('a page through an index of %s', (kind) => {
  const readAll = (c: string, options: Partial<IndexPageOptions>, engine = world.engine) =>
    pagesOf(
      (asked) =>
        kind === 'list'
          ? readByList(engine, texts, texts.indexes.list as IndexEntity, { a: kind, c }, asked)
          : readByCopies(engine, texts, texts.indexes.keys as IntraPartitionIndex, { a: kind, c }, asked),
      { top: 1_000, ...options },
    );
  const sizes = (pages: readonly Internal['Page'][]) => pages.map(({ items }) => items.length);

  test('ends at about 4 million characters and omits large fields unless they are selected', async () => {
    for (const b of ['1', '2', '3', '4', '5']) {
      // The large text is stored in a blob and in the row.
      const text = 'x'.repeat(b < '4' ? 3_000_000 : 200_000);
      await engineWrite.createEntity(world.engine, texts, { a: kind, b, c: 'long', text });
    }
    const projected: boolean[] = [];
    const inner = createDefaultHttpClient();
    const sendRequest = (request: PipelineRequest) => {
      if (/RowKey='\d'/.test(decodeURIComponent(request.url))) projected.push(request.url.includes('select='));
      return inner.sendRequest(request);
    };
    const engine = world.engineThrough({ sendRequest });
    const small = await readAll('long', { select: ['a', 'b', 'c'] }, engine);
    expect(small.flatMap(({ items }) => items)).toEqual(
      ['1', '2', '3', '4', '5'].map((b) => ({ a: kind, b, c: 'long' })),
    );
    expect(sizes(small)).toEqual([5]);
    expect(projected).toEqual([true, true, true, true, true]);
    const whole = await readAll('long', { select: ['b', 'text'] }, engine);
    expect(sizes(whole)).toEqual([2, 3]);
    expect(whole.flatMap(({ items }) => items).every(({ text }) => text !== undefined)).toBe(true);
  });

  test('ends after 256 lookups', async () => {
    const ids = Array.from({ length: 300 }, (_, index) => String(1000 + index));
    const rows = ids.flatMap((b) => {
      const source = { EntityType: 'texts', SourcePartition: kind, SourceRow: b };
      const values = { a: kind, b, c: 'many', text: '' };
      return [
        { row: b, properties: defineCodec.toProperties(texts, values, { WriteId: '1', Incarnation: '1' }) },
        { row: `c_many_${b}`, properties: source },
      ];
    });
    await put('texts', kind, [
      ...rows,
      { row: 'list_many', properties: { EntityType: 'list', Members: JSON.stringify(ids) } },
    ]);
    const pages = await readAll('many', {});
    expect(sizes(pages)).toEqual([256, 44]);
    expect(pages.flatMap(({ items }) => items.map(({ b }) => b))).toEqual(ids);
    expect(sizes(await readAll('many', { top: 200 }))).toEqual([200, 100]);
  });
});
