import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Listing,
  type Where,
} from '../../../lib/index.ts';
import { modelParts } from '../../kit/define.ts';
import type { Internal } from '../../kit/internal.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { openApp } from '../../open-app.ts';
import { sampleRuns } from '../../points.ts';
import { testStorage } from '../../storage.ts';

/** Filters on every kind of read and every type of property, compared with the same in memory. */

const NAMES = ['', 'a', 'B', "o'", 'ge:1', '\u{1f600}', '\ue000', 'é'];
const member = z.object({
  town: z.string(),
  id: z.string().regex(/^\d{4}$/),
  name: z.string(),
  nick: z.string().optional(),
  joined: z.iso.date(),
  seen: z.iso.datetime({ offset: true }).overwrite((at) => new Date(at).toISOString()),
  year: z.int32().min(0).max(9999),
  score: z.int(),
  weight: z.number().optional(),
  active: z.boolean().optional(),
  secret: z.string().optional(),
  notes: z.string().optional(),
  tags: z.array(z.string()).default([]),
});
type Member = z.infer<typeof member>;

const access = { read: ['reader'], write: ['hr'] } as const;
const members = defineEntity('members', {
  schema: member,
  table: 'members',
  key: { partition: '{town}', row: 'id_{id}' },
  // Version 1 had other names, and a number as a text.
  version: 2,
  upgrades: { 1: ({ title, ...others }) => ({ ...others, name: title, score: Number(others.score) }) },
  encrypted: ['secret'],
  large: ['notes'],
  indexes: {
    joined: intraPartitionIndex({ row: 'joined_{joined}_{id}', copies: ['name', 'weight'] }),
    town: interPartitionIndex({
      table: 'membersbytown',
      partition: 'all',
      row: '{town}_{id}',
      copies: ['name', 'nick', 'joined', 'seen', 'year', 'score', 'weight', 'active'],
    }),
    reference: interPartitionIndex({ table: 'membersbyref', partition: '{id%3}', row: '{town}_{id}', copies: 'keys' }),
    list: indexEntity({ row: 'list', holds: '{id}' }),
    lists: indexEntity({ table: 'memberlists', partition: 'all', row: '{joined}', holds: '{town}/{id}' }),
  },
  access: { ...access, restricted: { secret: ['hr'] } },
});
const visits = defineEntity('visits', {
  schema: z.object({
    town: z.string(),
    id: z.string().regex(/^\d{4}$/),
    visit: z.int32().min(0).max(999),
    stars: z.int32().optional(),
  }),
  table: 'members',
  key: { partition: '{town}', row: 'id_{id}_{visit:3}' },
  childOf: members,
  access,
});
const logins = defineEntity('logins', {
  schema: z.object({ id: z.string(), at: z.iso.datetime(), failed: z.boolean(), tries: z.int32() }),
  table: 'logins',
  key: { partition: '{id}', row: '{at}' },
  period: { per: 'year', field: 'at', keep: 3 },
  access,
});

const model = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [members, visits, logins] });
const rowkey = openApp(import.meta.url, model, { keys: { file: `/tmp/filters-${process.pid}.json` } });
const { store } = rowkey;

const day = fc.integer({ min: 0, max: 9 }).map((days) => new Date(Date.UTC(2020, 0, 1 + days)).toISOString());
const NUMBERS = [-1e300, -2.5, -1, -0.1, 0, 1e-9, 0.1, 1, 2.5, 1e21, 1e300];
const INTEGERS = [Number.MIN_SAFE_INTEGER, -10, -9, -1, 0, 1, 9, 10, 2 ** 40, Number.MAX_SAFE_INTEGER];
const arbitraries = {
  name: fc.constantFrom(...NAMES),
  nick: fc.constantFrom(...NAMES),
  joined: day.map((at) => at.slice(0, 10)),
  seen: day,
  year: fc.integer({ min: 0, max: 12 }),
  score: fc.constantFrom(...INTEGERS),
  weight: fc.constantFrom(...NUMBERS),
  active: fc.boolean(),
};
type Field = keyof typeof arbitraries;
const FIELDS = Object.keys(arbitraries) as Field[];
const population = fc.sample(fc.record(arbitraries, { requiredKeys: ['name', 'joined', 'seen', 'year', 'score'] }), 70);
const all = population.map((one, at) => ({
  ...one,
  town: at % 4 ? 'Oslo' : 'Bergen',
  id: String(at).padStart(4, '0'),
  tags: [],
}));
const inOslo = all.filter(({ town }) => town === 'Oslo');

beforeAll(async () => {
  await rowkey.provision();
  for (let at = 0; at < all.length; at += 8)
    await Promise.all(all.slice(at, at + 8).map((one) => store.members.create(one)));
  await makeOlder((id) => id % 3 === 0);
});

/** Stores the rows of some entities as version 1 did. */
async function makeOlder(isOlder: (id: number) => boolean) {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  for (const table of ['members', 'membersbytown'])
    for await (const row of storage.table(table).listEntities<Record<string, unknown>>()) {
      const { name, score, ...others } = row;
      if (others.EntityType !== 'members' || !isOlder(Number(others.id))) continue;
      const older = { ...others, EntityVersion: 1, ...(name === undefined ? {} : { title: name }) };
      const asText = score === undefined ? {} : { score: String(score) };
      await storage
        .table(table)
        .updateEntity(
          { ...older, ...asText, partitionKey: row.partitionKey ?? '', rowKey: row.rowKey ?? '' },
          'Replace',
        );
    }
}

const comparison = fc.constantFrom(...FIELDS).chain((field) => {
  const value: fc.Arbitrary<unknown> = arbitraries[field];
  const operators = modelParts.OPERATORS.filter((one) => field !== 'active' || ['eq', 'ne', 'in'].includes(one));
  return fc.constantFrom(...operators).chain((operator) =>
    fc.record({
      field: fc.constant(field),
      operator: fc.constant(operator),
      values: fc.array(value, { minLength: 1, maxLength: operator === 'in' ? 20 : 1 }),
    }),
  );
});

/** One comparison of a field and operator, in the form of the store. */
function toWhere(asked: readonly Internal['AskedComparison'][]): Record<string, Record<string, unknown>> {
  const where: Record<string, Record<string, unknown>> = {};
  for (const { field, operator, values } of asked)
    where[field] = { ...where[field], [operator]: operator === 'in' ? values : values[0] };
  return where;
}

/** What the documentation says, without the code under test. */
function isMatch(one: Record<string, unknown>, where: Record<string, Record<string, unknown>>): boolean {
  return Object.entries(where).every(([field, operators]) =>
    Object.entries(operators).every(([operator, value]) => {
      const own = one[field];
      if (own === undefined) return false;
      const [a, b] = [own, value] as [number, number];
      const table = { eq: a === b, ne: a !== b, gt: a > b, ge: a >= b, lt: a < b, le: a <= b };
      return operator === 'in' ? (value as unknown[]).includes(own) : table[operator as keyof typeof table];
    }),
  );
}

async function idsOf<Item extends { id: string }>(listing: Listing<Item>): Promise<string[]> {
  const items = await Array.fromAsync(listing);
  return items.map(({ id }) => id);
}

type MemberWhere = Where<typeof members>;

async function expectFiltered(
  read: (where: MemberWhere) => Listing<{ id: string }>,
  among: readonly Record<string, unknown>[],
  fields: readonly string[] = FIELDS,
) {
  await fc.assert(
    fc.asyncProperty(fc.array(comparison, { minLength: 1, maxLength: 4 }), async (asked) => {
      const where = toWhere(asked.filter(({ field }) => fields.includes(field)));
      const expected = among.filter((one) => isMatch(one, where)).map(({ id }) => id);
      expect((await idsOf(read(where as MemberWhere))).sort()).toEqual(expected);
    }),
    sampleRuns(40),
  );
}

describe('a filter returns the same as one in memory', () => {
  test('on a partition', () =>
    expectFiltered((where) => store.members.range({ town: 'Oslo' }, { where, select: ['id'] }), inOslo));
  test('on partial copies', () => expectFiltered((where) => store.members.by.town.range({}, { where }), all));
  test('on references', () => expectFiltered((where) => store.members.by.reference.range({}, { where }), all));
  test('on a list', () => expectFiltered((where) => store.members.by.list({ town: 'Oslo' }, { where }), inOslo));
  test('on several lists', () => expectFiltered((where) => store.members.by.lists.range({}, { where }), all));
  test('on copies of few fields', () => {
    const read = (where: MemberWhere) =>
      store.members.by.joined.range({ town: 'Oslo' }, { where: where as { name?: string } });
    return expectFiltered(read, inOslo, ['name', 'weight']);
  });
});

test('a filter on children keeps their parent, and other parents have other children', async () => {
  const key = { town: 'Oslo', id: '0001' };
  for (const [visit, stars] of [
    [1, 3],
    [2, 5],
    [3, undefined],
  ] as const)
    await store.visits.create({ ...key, visit, ...(stars === undefined ? {} : { stars }) });
  const read = async (where: Where<typeof visits>) => {
    const found = await store.members.get(key, { include: ['visits'], where: { visits: where } });
    return found?.values.visits.map(({ visit }) => visit);
  };
  expect(await read({ stars: { ge: 4 } })).toEqual([2]);
  expect(await read({ stars: { ne: 5 } })).toEqual([1]);
  expect(await read({ visit: { in: [1, 3] }, stars: { lt: 9 } })).toEqual([1]);
  expect(await read({ visit: 77 })).toEqual([]);
  expect(await read({})).toEqual([1, 2, 3]);
});

test('a filter on tables of several periods compares the rows of each', async () => {
  const year = new Date().getUTCFullYear();
  const id = '0001';
  for (const [at, tries] of [
    [year - 1, 1],
    [year, 2],
    [year, 3],
  ].entries())
    await store.logins.create({
      id,
      at: `${tries[0]}-01-01T00:00:0${at}.000Z`,
      failed: at > 0,
      tries: Number(tries[1]),
    });
  const read = async (where: Where<typeof logins>) =>
    (await Array.fromAsync(store.logins.range({ id }, { where, select: ['at'] }))).length;
  expect(await read({ failed: true })).toBe(2);
  expect(await read({ tries: { lt: 3 } })).toBe(2);
  expect(await read({ failed: { ne: true }, tries: { gt: 1 } })).toBe(0);
});

const large: Record<string, unknown> = { name: Object.fromEntries(modelParts.OPERATORS.map((one) => [one, 'x'])) };
test.each([
  ['an encrypted field', { secret: 'x' }, 'secret', 'encrypted'],
  ['a large text', { notes: 'x' }, 'notes', 'not stored as one property'],
  ['a list', { tags: ['a'] }, 'tags', 'no operator'],
  ['a list with an operator', { tags: { eq: 'a' } }, 'tags', 'JSON'],
  ['an unknown field', { colour: 'red' }, 'colour', 'not a field of members'],
  ['an unknown operator', { year: { like: 1 } }, 'year', 'no operator "like"'],
  ['an order of Booleans', { active: { gt: false } }, 'active', 'no order'],
  ['no values', { year: { in: [] } }, 'year', '0 values'],
  ['too many values', { year: { in: Array.from({ length: 101 }, (_, at) => at) } }, 'year', '101 values'],
  ['several values for one', { year: { ge: [1, 2] } }, 'year', '2 values'],
  ['null', { nick: null }, 'nick', 'null|string'],
  ['a bound of another type', { year: { ge: '1' } }, 'year', 'bound'],
  ['a fraction for a whole number', { score: { ge: 1.5 } }, 'score', 'bound'],
  ['a number beyond 32 bits', { year: { lt: 2 ** 31 } }, 'year', 'bound'],
  ['a value that the field cannot have', { year: 10_000 }, 'year', 'at most 9999'],
  ['a bound that is no date', { joined: { ge: 'yesterday' } }, 'joined', 'bound'],
  ['half of a surrogate pair', { name: '\ud800' }, 'name', 'invalid text'],
  [
    'more comparisons than are accepted',
    {
      ...large,
      ...Object.fromEntries(
        ['nick', 'joined', 'seen'].map((field) => [
          field,
          { eq: '2020', ne: '2020', gt: '2020', ge: '2020', lt: '2020', le: '2020' },
        ]),
      ),
    },
    undefined,
    'filter|date|instant',
  ],
])('a filter with %s is rejected', async (_, where, field, message) => {
  const error = await store.members
    .range({ town: 'Oslo' }, { where: where as MemberWhere })
    .page()
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'invalid-input', message: expect.stringMatching(new RegExp(message)) });
  if (field) expect(error).toMatchObject({ field });
});

test('a filter on a field that a partial copy does not have is rejected', async () => {
  const where = { year: 1 } as { name?: string };
  await expect(store.members.by.joined.range({ town: 'Oslo' }, { where }).page()).rejects.toThrow('not in the copies');
});

test('bounds may be prefixes of dates, and values are normalized', async () => {
  const expected = inOslo.filter(({ joined }) => joined >= '2020-01-05').map(({ id }) => id);
  expect(
    await idsOf(store.members.range({ town: 'Oslo' }, { where: { joined: { ge: '2020-01-05', lt: '2021' } } })),
  ).toEqual(expected);
  const [first] = inOslo;
  const offset = `${first?.seen.slice(0, 11)}02:00:00.000+02:00`;
  const seen = inOslo.filter((one) => one.seen === first?.seen).map(({ id }) => id);
  expect(await idsOf(store.members.range({ town: 'Oslo' }, { where: { seen: offset } }))).toEqual(seen);
});

test('a filter that storage cannot evaluate as a whole is compared here', async () => {
  const where = { year: { in: Array.from({ length: 40 }, (_, at) => at), ge: 3 }, name: { ne: 'x'.repeat(600) } };
  const expected = inOslo.filter(({ year }) => year >= 3).map(({ id }) => id);
  expect(await idsOf(store.members.range({ town: 'Oslo' }, { where }))).toEqual(expected);
});

test('the population has absent values', () => {
  const some: readonly Partial<Member>[] = all;
  for (const field of ['nick', 'weight', 'active'] as const)
    expect(new Set(some.map((one) => one[field] === undefined)).size).toBe(2);
});
