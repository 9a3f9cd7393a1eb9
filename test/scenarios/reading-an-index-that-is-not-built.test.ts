import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../lib/client/index.ts';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
} from '../../lib/define.ts';
import { type Ask, openAccessApp } from '../access-app.ts';
import { operationsModel } from '../kit/operations.ts';
import { openApp } from '../open-app.ts';

/** An index that was declared for stored entities lacks them until it is built: a read through it fails, and a write does not. */

const declared = {
  schema: z.object({ shelf: z.string(), id: z.string(), size: z.int32(), code: z.string(), owner: z.string() }),
  table: 'items',
  key: { partition: '{shelf}', row: 'item_{id}' },
  access: { read: ['member'], write: ['member'] },
} as const;
const people = {
  schema: z.object({ id: z.string(), mail: z.string() }),
  table: 'people',
  key: { partition: '{id}', row: '{id}' },
  access: declared.access,
} as const;
const loans = {
  schema: z.object({ id: z.string(), mail: z.string() }),
  table: 'loans',
  key: { partition: '{id}', row: '{id}' },
  access: declared.access,
} as const;
const before = defineModel({
  roles: ['member', 'operator'],
  operatorRole: 'operator',
  entities: [defineEntity('items', declared), defineEntity('people', people), defineEntity('loans', loans)],
});
const items = defineEntity('items', {
  ...declared,
  indexes: {
    here: intraPartitionIndex({ row: 'size_{size:4}_{id}' }),
    remote: interPartitionIndex({ table: 'itemsbyowner', partition: '{owner}', row: '{shelf}_{id}' }),
    code: interPartitionIndex({ table: 'itemsbycode', partition: '{code#}', row: '{code}', unique: true }),
    list: indexEntity({ row: 'list_{size:4}', holds: '{id}' }),
  },
  totals: { perOwner: total({ table: 'itemsperowner', partition: '{owner}', row: 'all' }) },
});
const NAMES = ['here', 'remote', 'code', 'list', 'perOwner'] as const;
const fresh = defineEntity('fresh', {
  schema: z.object({ id: z.string(), name: z.string() }),
  table: 'fresh',
  key: { partition: '{id}', row: '{id}' },
  indexes: { name: interPartitionIndex({ table: 'freshbyname', partition: '{name}', row: '{id}' }) },
  access: { read: ['member'], write: ['member'] },
});
const peopleByMail = defineEntity('people', {
  ...people,
  indexes: { mail: interPartitionIndex({ table: 'peoplebymail', partition: '{mail#}', row: '{mail}', unique: true }) },
});
const loansOfPeople = defineEntity('loans', {
  ...loans,
  indexes: { ofPerson: interPartitionIndex({ table: 'loansbymail', partition: '{mail}', row: '{id}' }) },
  references: { mail: { to: peopleByMail, by: 'mail', onDelete: 'refuse' } },
});
const model = defineModel({
  roles: ['member', 'operator'],
  operatorRole: 'operator',
  entities: [items, fresh, peopleByMail, loansOfPeople],
});

const member = { roles: ['member'] };
const operator = { roles: ['operator'] };
const one = { shelf: 's', id: 'a', size: 7, code: 'c1', owner: 'ann' };
/** Each read through an index or of totals over HTTP, with the name of the index and what it returns when it is built. */
const READS: readonly [(typeof NAMES)[number], string, object][] = [
  ['here', 'items/by/here/s/7', { items: [one] }],
  ['remote', 'items/by/remote/ann', { items: [one] }],
  ['code', 'items/by/code/c1', one],
  ['list', 'items/by/list/s/7', { items: [one] }],
  ['perOwner', 'items/totals/perOwner/ann', { count: 1 }],
];

let now = Date.now();
let ask: Ask;
/** Another process of the same deployment. */
let askOther: Ask;
beforeAll(async () => {
  const first = await openAccessApp(import.meta.url, before);
  await operationsModel.guardModel(first.engine, before.list, undefined);
  expect((await first.ask(member, 'POST', 'items', one)).status).toBe(201);
  for (const [path, body] of [
    ['people', { id: 'ann', mail: 'ann@x' }],
    ['loans', { id: 'l1', mail: 'ann@x' }],
  ] as const)
    expect((await first.ask(member, 'POST', path, body)).status).toBe(201);
  const [app, other] = [
    await openAccessApp(import.meta.url, model, { now: () => now }),
    await openAccessApp(import.meta.url, model, { now: () => now }),
  ];
  for (const { engine } of [app, other]) await operationsModel.guardModel(engine, model.list, undefined);
  [ask, askOther] = [app.ask, other.ask];
});

const costOf = ({ headers }: { headers: Headers }) =>
  Number(/"(\d+) trans/.exec(headers.get('server-timing') ?? '')?.[1]);
const notBuilt = (index: string) => ({
  code: 'not-built',
  detail: expect.stringContaining(`npm run reindex -- items ${index}`),
});

describe('an index that is not built', () => {
  test.each(READS)('%s refuses a read over HTTP, which takes no transaction', async (index, path) => {
    const reply = await ask(member, 'GET', path);
    expect(reply).toMatchObject({ status: 503, body: notBuilt(index) });
    expect(costOf(reply)).toBe(0);
  });

  test('refuses a query', async () => {
    const read = { entity: 'items', select: ['id'] };
    const { body } = await ask(member, 'POST', 'query', {
      reads: {
        here: { ...read, by: 'here', values: { shelf: 's', size: 7 } },
        remote: { ...read, by: 'remote', values: { owner: 'ann' } },
        code: { ...read, by: 'code', values: { code: 'c1' } },
        list: { ...read, by: 'list', values: { shelf: 's', size: 7 } },
      },
    });
    for (const index of ['here', 'remote', 'code', 'list'])
      expect(body.reads[index]).toMatchObject({ status: 503, transactions: 0, problem: notBuilt(index) });
  });

  test('refuses reads of the store and of the typed client', async () => {
    const { store } = openApp(import.meta.url, model);
    const client = createClient<typeof model>({
      url: 'https://x/api',
      token: 'x',
      fetch: async (input) => {
        const { pathname, search } = new URL(String(input));
        const { status, headers, text } = await ask(member, 'GET', `${pathname.slice(5)}${search}`);
        return new Response(text, { status, headers });
      },
    });
    for (const { items: calls } of [store, client]) {
      await expect(Array.fromAsync(calls.by.remote({ owner: 'ann' }))).rejects.toMatchObject({ code: 'not-built' });
      await expect(calls.by.code({ code: 'c1' })).rejects.toMatchObject({ code: 'not-built' });
      await expect(calls.totals.perOwner.get({ owner: 'ann' })).rejects.toMatchObject({ code: 'not-built' });
    }
  });

  test('accepts writes, and reads by key and by partition', async () => {
    const other = { ...one, id: 'b', code: 'c2', owner: 'bob' };
    expect((await ask(member, 'POST', 'items', other)).status).toBe(201);
    expect((await ask(member, 'PATCH', 'items/s/b', { size: 8 })).status).toBe(200);
    expect((await ask(member, 'GET', 'items/s/a')).body).toEqual(one);
    expect((await ask(member, 'GET', 'items/s')).body.items).toHaveLength(2);
    expect((await ask(member, 'DELETE', 'items/s/b')).status).toBe(204);
  });

  test('refuses a reference, and a delete, that it would have to decide', async () => {
    const refused = (index: string) => ({
      status: 503,
      body: { code: 'not-built', detail: expect.stringContaining(index) },
    });
    const loan = { id: 'l2', mail: 'ann@x' };
    expect(await ask(member, 'POST', 'loans', loan)).toMatchObject(refused('reindex -- people mail'));
    expect(await ask(member, 'DELETE', 'people/ann')).toMatchObject(refused('reindex -- loans ofPerson'));
    expect((await ask(member, 'GET', 'people/ann')).status).toBe(200);
    expect((await ask(member, 'POST', 'people', { id: 'bob', mail: 'bob@x' })).status).toBe(201);
    expect((await ask(member, 'POST', 'loans', { id: 'l3', mail: 'bob@x' })).status).toBe(201);
    expect((await ask(member, 'DELETE', 'people/bob')).body).toMatchObject({ code: 'referenced' });
  });

  test('of an entity that is new is built at once', async () => {
    expect(await ask(member, 'GET', 'fresh/by/name/x')).toMatchObject({ status: 200, body: { items: [] } });
  });
});

describe('after the command', () => {
  test.each(READS)(
    '%s is read, in another process within a second',
    { tags: ['slow'] },
    async (index, path, expected) => {
      now += 1_000;
      expect((await askOther(member, 'GET', path)).status).toBe(503);
      for (let query: string | undefined = ''; query !== undefined; ) {
        const { status, headers } = await ask(operator, 'POST', `operations/reindex/items/${index}${query}`);
        expect(status).toBe(200);
        query = /\?[^>]*/.exec(headers.get('link') ?? '')?.[0];
      }
      const built = await ask(member, 'GET', path);
      expect(built).toMatchObject({ status: 200, body: expected });
      expect(await askOther(member, 'GET', path)).toMatchObject({ status: 503, body: notBuilt(index) });
      now += 1_000;
      const other = await askOther(member, 'GET', path);
      expect(other).toMatchObject({ status: 200, body: expected });
      expect(costOf(other)).toBe(costOf(built));
    },
  );
});
