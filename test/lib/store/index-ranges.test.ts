import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../lib/define/declaration/indexes.ts';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import { defineModel } from '../../../lib/define-model.ts';
import { createRowkey } from '../../../lib/rowkey.ts';
import { sampleRuns } from '../../points.ts';
import { testStorage } from '../../storage.ts';

/** Ranges over every kind of index, compared with a filter and a sort in memory. */

const member = z.object({
  town: z.string(),
  id: z.string().regex(/^\d{4}$/),
  name: z.string().min(1),
  joined: z.iso.date(),
  seen: z.iso.datetime(),
  year: z.int32().min(0).max(9999),
  tags: z.array(z.string()),
});
type Member = z.infer<typeof member>;

const members = defineEntity('members', {
  schema: member,
  table: 'members',
  key: { partition: '{town}', row: 'id_{id}' },
  indexes: {
    joined: intraPartitionIndex({ row: 'joined_{joined}_{id}' }),
    seen: intraPartitionIndex({ row: 'seen_{seen~}_{id}', copies: 'keys' }),
    // A space sorts before every character of a name, so that "Ann" comes before "Ann Marie".
    townAndName: interPartitionIndex({ table: 'membersbytown', partition: '{town}', row: '{name} {id}' }),
    name: interPartitionIndex({
      table: 'membersbyname',
      partition: 'names_{id%4}',
      row: '{name} {town} {id}',
      copies: ['name'],
    }),
    id: interPartitionIndex({ table: 'membersbyid', partition: 'ids', row: '{id}', unique: true }),
    tag: interPartitionIndex({
      table: 'membersbytag',
      partition: '{tags[]}',
      row: '{year:4}_{town}_{id}',
      copies: 'keys',
    }),
    nameList: indexEntity({ row: 'list_{name}', holds: '{id}' }),
    joinedList: indexEntity({ table: 'memberlists', partition: 'all', row: '{joined}', holds: '{town}/{id}' }),
  },
  access: { read: ['reader'], write: ['hr'] },
});

const rowkey = createRowkey({
  model: defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [members] }),
  storage: { connectionString: testStorage(import.meta.url) },
  auth: { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' },
});
const { by } = rowkey.store.members;

const TOWNS = ['Bergen', 'Oslo'];
const TAGS = ['crime', 'sea'];
const name = fc.string({ unit: fc.constantFrom(...'Aab_- é\u{1f600}'), minLength: 1, maxLength: 4 });
const day = fc.integer({ min: 0, max: 60 }).map((days) => new Date(Date.UTC(2020, 0, 1 + days)).toISOString());
const aMember = fc.record({
  town: fc.constantFrom(...TOWNS),
  name,
  joined: day.map((at) => at.slice(0, 10)),
  seen: day,
  year: fc.integer({ min: 0, max: 120 }),
  tags: fc.subarray(TAGS),
});

const all: Member[] = [];
beforeAll(async () => {
  await rowkey.provision();
  const population = fc.sample(aMember, 90).map((one, at) => ({ ...one, id: String(at).padStart(4, '0') }));
  for (let at = 0; at < population.length; at += 8)
    await Promise.all(population.slice(at, at + 8).map((one) => rowkey.store.members.create(one)));
  // Entries move and disappear, too.
  for (const { town, id } of population.slice(0, 10)) await rowkey.store.members.delete({ town, id });
  const [changes] = fc.sample(fc.array(aMember, { minLength: 10, maxLength: 10 }), 1);
  for (const [at, one] of population.slice(10, 20).entries()) {
    const { town: _, ...patch } = changes?.[at] ?? one;
    Object.assign(one, patch);
    await rowkey.store.members.update({ town: one.town, id: one.id }, patch);
  }
  all.push(...population.slice(10));
});

interface Bounds<Value> {
  readonly from?: Value;
  readonly to?: Value;
  readonly prefix?: string;
}
const isWithin = (value: string | number, { from, to, prefix = '' }: Bounds<string | number>) =>
  (from === undefined || value >= from) &&
  (to === undefined || value <= to || (typeof value === 'string' && value.startsWith(String(to)))) &&
  String(value).startsWith(prefix);

/** The ids of the members with this, in the order of these fields. */
function expected(isIn: (one: Member) => boolean, ...order: ((one: Member) => string | number)[]): string[] {
  const compare = (one: Member, other: Member) => {
    const value = order.find((of) => of(one) !== of(other));
    return !value ? 0 : value(one) < value(other) ? -1 : 1;
  };
  return all
    .filter(isIn)
    .sort(compare)
    .map(({ id }) => id);
}

interface Pages {
  page(options: { top: number; after?: unknown }): Promise<{ items: readonly { id: string }[]; next: unknown }>;
}
async function idsOf(listing: unknown, top: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after: unknown, isFirst = true; isFirst || after; isFirst = false) {
    const { items, next } = await (listing as Pages).page({ top, after });
    expect(items.length).toBeLessThanOrEqual(top);
    ids.push(...items.map(({ id }) => id));
    after = next;
  }
  return ids;
}

const top = fc.constantFrom(1, 3, 7, 100);
const town = fc.constantFrom(...TOWNS);
function boundsOf<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Bounds<Value>> {
  return fc.record({ from: value, to: value }, { requiredKeys: [] });
}
const textBounds = (value: fc.Arbitrary<string>) => fc.oneof(boundsOf(value), fc.record({ prefix: value }));
const date = day.chain((at) => fc.constantFrom(at.slice(0, 10), at.slice(0, 7), at.slice(0, 9)));
/** As many as a minute allows on a busy machine. */
const RUNS = sampleRuns(25);

describe('a range over an index returns what a filter and a sort in memory return', () => {
  test('of copies in the partition, by date', async () => {
    await fc.assert(
      fc.asyncProperty(town, textBounds(date), top, async (at, bounds, size) => {
        const isIn = (one: Member) => one.town === at && isWithin(one.joined, bounds);
        const wanted = expected(
          isIn,
          ({ joined }) => joined,
          ({ id }) => id,
        );
        expect(await idsOf(by.joined.range({ town: at }, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of references in the partition, newest first', async () => {
    await fc.assert(
      fc.asyncProperty(town, boundsOf(day), top, async (at, bounds, size) => {
        const isIn = (one: Member) => one.town === at && isWithin(one.seen, bounds);
        const wanted = expected(
          isIn,
          ({ seen }) => -Date.parse(seen),
          ({ id }) => id,
        );
        expect(await idsOf(by.seen.range({ town: at }, { ...bounds, order: 'descending' }), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of copies outside of the partition, by town and then by name', async () => {
    await fc.assert(
      fc.asyncProperty(town, textBounds(name), top, async (at, bounds, size) => {
        const isIn = (one: Member) => one.town === at && isWithin(one.name, bounds);
        const wanted = expected(
          isIn,
          (one) => one.name,
          ({ id }) => id,
        );
        expect(await idsOf(by.townAndName.range({ town: at }, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of partial copies that are spread over buckets, by name alone', async () => {
    await fc.assert(
      fc.asyncProperty(textBounds(name), top, async (bounds, size) => {
        const wanted = expected(
          (one) => isWithin(one.name, bounds),
          (one) => one.name,
          (one) => one.town,
          ({ id }) => id,
        );
        expect(await idsOf(by.name.range({}, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of copies in a unique index', async () => {
    const id = fc.constantFrom('0', '00', '003', '0042', '0089');
    await fc.assert(
      fc.asyncProperty(textBounds(id), top, async (bounds, size) => {
        const wanted = expected(
          (one) => isWithin(one.id, bounds),
          (one) => one.id,
        );
        expect(await idsOf(by.id.range({}, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of references for each element of a list, by year', async () => {
    const year = fc.integer({ min: 0, max: 130 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...TAGS), boundsOf(year), top, async (tag, bounds, size) => {
        const isIn = (one: Member) => one.tags.includes(tag) && isWithin(one.year, bounds);
        const wanted = expected(
          isIn,
          (one) => one.year,
          (one) => one.town,
          ({ id }) => id,
        );
        expect(await idsOf(by.tag.range({ tags: tag }, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of lists in the partition, by name', async () => {
    await fc.assert(
      fc.asyncProperty(town, textBounds(name), top, async (at, bounds, size) => {
        const isIn = (one: Member) => one.town === at && isWithin(one.name, bounds);
        const wanted = expected(
          isIn,
          (one) => one.name,
          ({ id }) => id,
        );
        expect(await idsOf(by.nameList.range({ town: at }, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });

  test('of lists outside of the partition, by date', async () => {
    await fc.assert(
      fc.asyncProperty(textBounds(date), top, async (bounds, size) => {
        const wanted = expected(
          (one) => isWithin(one.joined, bounds),
          (one) => one.joined,
          (one) => one.town,
          ({ id }) => id,
        );
        expect(await idsOf(by.joinedList.range({}, bounds), size)).toEqual(wanted);
      }),
      RUNS,
    );
  });
});

test('iterates over the first entities of a range', async () => {
  const wanted = expected(
    () => true,
    ({ joined }) => joined,
    ({ town }) => town,
    ({ id }) => id,
  );
  for (const first of [1, 5, 1_000]) {
    const read = await Array.fromAsync(by.joinedList.range({}, { first, select: ['id'] }));
    expect(read).toEqual(wanted.slice(0, first).map((id) => ({ id })));
  }
  expect((await by.joinedList.range({}, { first: 2 }).page()).items).toHaveLength(2);
  await expect(async () => by.joinedList.range({}, { first: 0 })).rejects.toMatchObject({
    field: 'first',
  });
});

test('rejects a range without the partition key, and invalid fields and bounds', async () => {
  // @ts-expect-error the town comes first
  expect(() => by.townAndName.range({ name: 'Ann' })).toThrow(
    'A range over the index "townAndName" of members needs "town" first.',
  );
  await expect(by.joined.range({ town: 'Oslo' }, { order: 'descending' }).page()).rejects.toMatchObject({
    field: 'order',
    accepted: 'ascending',
  });
  await expect(by.tag.range({ tags: 'sea' }, { from: 12_345 }).page()).rejects.toMatchObject({
    field: 'from',
  });
});
