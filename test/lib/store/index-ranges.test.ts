import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../lib/define.ts';
import { allPages } from '../../all-pages.ts';
import { openApp } from '../../open-app.ts';
import { sampleRuns } from '../../points.ts';

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

const model = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [members] });
const rowkey = openApp(import.meta.url, model);
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

interface Bounds {
  readonly from?: string | number;
  readonly to?: string | number;
  readonly prefix?: string;
  readonly order?: 'descending';
}
const isWithin = (value: string | number, { from, to, prefix = '' }: Bounds) =>
  (from === undefined || value >= from) &&
  (to === undefined || value <= to || (typeof value === 'string' && value.startsWith(String(to)))) &&
  String(value).startsWith(prefix);

type Field = 'id' | 'joined' | 'name' | 'seen' | 'year';

/** The ids of the members with this, in the order of the field, the town and the id. */
function expected(field: Field, isIn: (one: Member) => boolean = () => true, order?: Bounds['order']): string[] {
  const compare = (one: Member, other: Member) => {
    const first = ([field, 'town', 'id'] as const).find((each) => one[each] !== other[each]) ?? 'id';
    const isBefore = one[first] < other[first];
    return isBefore === (order === 'descending' && first === field) ? 1 : -1;
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
  const pages = await allPages<Awaited<ReturnType<Pages['page']>>>((after) => (listing as Pages).page({ top, after }));
  for (const { items } of pages) expect(items.length).toBeLessThanOrEqual(top);
  return pages.flatMap(({ items }) => items.map(({ id }) => id));
}

const top = fc.constantFrom(1, 3, 7, 100);
const town = fc.constantFrom(...TOWNS);
const boundsOf = (value: fc.Arbitrary<string | number>): fc.Arbitrary<Bounds> =>
  fc.record({ from: value, to: value }, { requiredKeys: [] });
const textBounds = (value: fc.Arbitrary<string>) => fc.oneof(boundsOf(value), fc.record({ prefix: value }));
const date = day.chain((at) => fc.constantFrom(at.slice(0, 10), at.slice(0, 7), at.slice(0, 9)));
/** As many as a minute allows on a busy machine. */
const RUNS = sampleRuns(25);

const id = fc.constantFrom('0', '00', '003', '0042', '0089');
const year = fc.integer({ min: 0, max: 130 });
const newestFirst = boundsOf(day).map((bounds): Bounds => ({ ...bounds, order: 'descending' }));

type Leading = Readonly<Record<string, fc.Arbitrary<string>>>;
test.each<[title: string, index: keyof typeof by, leading: Leading, field: Field, within: fc.Arbitrary<Bounds>]>([
  ['copies in the partition, by date', 'joined', { town }, 'joined', textBounds(date)],
  ['references in the partition, newest first', 'seen', { town }, 'seen', newestFirst],
  ['copies outside of the partition, by town and then by name', 'townAndName', { town }, 'name', textBounds(name)],
  ['partial copies that are spread over buckets, by name alone', 'name', {}, 'name', textBounds(name)],
  ['copies in a unique index', 'id', {}, 'id', textBounds(id)],
  ['references for each element of a list', 'tag', { tags: fc.constantFrom(...TAGS) }, 'year', boundsOf(year)],
  ['lists in the partition, by name', 'nameList', { town }, 'name', textBounds(name)],
  ['lists outside of the partition, by date', 'joinedList', {}, 'joined', textBounds(date)],
])('a range of %s is what a filter and a sort in memory return', async (_, index, leading, field, within) => {
  const range = by[index].range as (given: object, bounds: Bounds) => unknown;
  await fc.assert(
    fc.asyncProperty(fc.record(leading), within, top, async (first, bounds, size) => {
      const isIn = (one: Member) =>
        (first.town ?? one.town) === one.town &&
        (!first.tags || one.tags.includes(first.tags)) &&
        isWithin(one[field], bounds);
      expect(await idsOf(range(first, bounds), size)).toEqual(expected(field, isIn, bounds.order));
    }),
    RUNS,
  );
});

test('iterates over the first entities of a range', async () => {
  const wanted = expected('joined');
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
