import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../../lib/client/index.ts';
import { defineEntity, defineModel, defineOperation, total, type UnlimitedStore } from '../../../lib/index.ts';
import { openAccessApp } from '../../access-app.ts';
import { apiCalls } from '../../kit/api.ts';
import { baseValues } from '../../kit/base.ts';

/** Values that would change on the way, at every door. */

const papers = defineEntity('papers', {
  schema: z.object({
    shelf: z.string(),
    id: z.string(),
    title: z.string().optional(),
    pages: z.number().optional(),
    data: z.json().optional(),
    free: z.unknown().optional(),
    named: z.record(z.string(), z.json()).optional(),
    declared: z.looseObject({ a: z.json().optional() }).optional(),
    tags: z.array(z.string()).optional(),
  }),
  table: 'papers',
  key: { partition: '{shelf}', row: 'id_{id}' },
  access: { read: ['clerk'], write: ['clerk'] },
});
const sales = defineEntity('sales', {
  schema: z.object({ id: z.string(), shop: z.string(), amount: z.number(), more: z.number().optional() }),
  table: 'sales',
  key: { partition: '{id}', row: 'sale' },
  derived: { more: ({ amount }) => Number(amount) * 2 },
  totals: { ofShop: total({ table: 'salesbyshop', partition: '{shop}', row: 'all', sum: ['amount'] }) },
  access: { read: ['clerk'], write: ['clerk'] },
});
const echo = defineOperation('echo', {
  summary: 'Return the input',
  kind: 'read',
  roles: ['clerk'],
  input: z.object({ free: z.unknown() }),
  output: z.object({ free: z.unknown() }),
});
const model = defineModel({
  entities: [papers, sales],
  operations: [echo],
  roles: ['clerk', 'operator'],
  operatorRole: 'operator',
});

let app: Awaited<ReturnType<typeof openAccessApp>>;
let store: UnlimitedStore<typeof model.entities>;
/** What `echo` returns in place of its input. */
let returned: { value: unknown } | undefined;
beforeAll(async () => {
  const operations = {
    echo: async ({ input }: { input: { free?: unknown } }) => ({ free: returned ? returned.value : input.free }),
  };
  app = await openAccessApp(import.meta.url, model, { operations });
  const record = <Result>(_by: string, write: () => Promise<Result>) => write();
  store = apiCalls.createStore(model.list, { engine: async () => app.engine, limits: [], record });
});

const clerk = { subject: 'ann', roles: ['clerk'] };
const JSON_TYPE = { 'content-type': 'application/json' };
const send = (method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, text?: string, more = {}) =>
  app.ask(clerk, method, path, text === undefined ? undefined : new TextEncoder().encode(text), {
    ...JSON_TYPE,
    ...more,
  });

let count = 0;
const fresh = () => {
  count += 1;
  return { shelf: 'one', id: `p${count}` };
};
/** An entity with a value in each free field. */
const stored = async () => {
  const key = fresh();
  await store.papers.put(key, { title: 'A', pages: 1, data: { a: 1 }, free: 1, named: { a: 1 } });
  return key;
};
const read = async (key: ReturnType<typeof fresh>) => (await store.papers.get(key))?.values;

/** The doors of HTTP. Each sends `text` as the value of `field`, and returns the problem, if it is rejected. */
const doors: Record<string, (field: string, text: string) => Promise<{ status: number; field?: string }>> = {
  async POST(field, text) {
    const key = fresh();
    const { status, body } = await send('POST', 'papers', `{"shelf":"one","id":"${key.id}","${field}":${text}}`);
    expect(await read(key)).toBeUndefined();
    return { ...body, status };
  },
  async PUT(field, text) {
    const key = await stored();
    const before = await read(key);
    const { status, body } = await send('PUT', `papers/one/${key.id}`, `{"${field}":${text}}`);
    expect(await read(key)).toEqual(before);
    return { ...body, status };
  },
  async PATCH(field, text) {
    const key = await stored();
    const before = await read(key);
    const { status, body } = await send('PATCH', `papers/one/${key.id}`, `{"${field}":${text}}`);
    expect(await read(key)).toEqual(before);
    return { ...body, status };
  },
  async 'minimal PATCH'(field, text) {
    const key = await stored();
    const before = await read(key);
    const minimal = { prefer: 'return=minimal' };
    const { status, body } = await send('PATCH', `papers/one/${key.id}`, `{"${field}":${text}}`, minimal);
    expect(await read(key)).toEqual(before);
    return { ...body, status };
  },
  async batch(field, text) {
    const [key, other] = [await stored(), fresh()];
    const before = await read(key);
    const actions = `[{"create":{"shelf":"one","id":"${other.id}"}},{"patch":{"shelf":"one","id":"${key.id}","${field}":${text}}}]`;
    const { status, body } = await send('POST', 'papers/batch', `{"actions":${actions}}`);
    expect(status).toBe(200);
    expect([await read(key), await read(other)]).toEqual([before, other]);
    return { ...body.results[1].problem, status: body.results[1].status };
  },
  async transact(field, text) {
    const [key, other] = [await stored(), fresh()];
    const before = await read(key);
    const actions = `[{"papers":{"create":{"shelf":"one","id":"${other.id}"}}},{"papers":{"put":{"shelf":"one","id":"${key.id}","${field}":${text}}}}]`;
    const { status, body } = await send('POST', 'transact', `{"actions":${actions}}`);
    expect([await read(key), await read(other)]).toEqual([before, undefined]);
    return { ...body, status };
  },
};

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

describe.each(Object.entries(doors))('%s', (_, door) => {
  test.each([
    ['a number beyond all doubles', '1e400', ''],
    ['a number beyond all doubles within', '{"a":[1,-1e999]}', '.a.1'],
    ['the name __proto__', '{"__proto__":{"a":1}}', '.__proto__'],
    ['the name __proto__ within', '[{"b":{"__proto__":null}}]', '.0.b.__proto__'],
    ['half of a surrogate pair', '{"a":"\\ud800"}', '.a'],
    ['a name with half of a surrogate pair', '{"\\udc00":1}', '.\ufffd'],
    ['a whole number of more digits than a double has', '{"a":12345678901234567890}', '.a'],
    ['a whole number beyond 2^53', '[9007199254740993]', '.0'],
    ['two members of one name', '{"a":1,"b":{"c":1,"\\u0063":2}}', '.b.c'],
    ['too many levels', deep(baseValues.MAX_JSON_DEPTH + 1), undefined],
    ['far too many levels', deep(5_000), undefined],
    ['far too many levels of objects', `${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`, undefined],
  ])('rejects %s, says where, and changes nothing', async (_what, text, path) => {
    for (const field of ['data', 'free', ...(text.startsWith('{') ? ['named', 'declared'] : [])]) {
      const problem = await door(field, text);
      expect([problem.status, problem], field).toMatchObject([400, { code: 'invalid-input' }]);
      if (path !== undefined) expect(problem.field?.endsWith(`${field}${path}`), problem.field).toBe(true);
    }
  });
});

test('what JSON can hold arrives as it was sent, also as deep as is allowed', async () => {
  const texts = [
    deep(baseValues.MAX_JSON_DEPTH),
    '{"constructor":1,"prototype":{"toString":null},"hasOwnProperty":[],"":0}',
    '[9007199254740992,12345678901234567000,1e300,-1e-300,0.1]',
    '"\\ud83d\\ude00"',
    '[null,true,false,"",{}]',
  ];
  for (const text of texts)
    for (const field of ['data', 'free']) {
      const { id } = fresh();
      const { status } = await send('POST', 'papers', `{"shelf":"one","id":"${id}","${field}":${text}}`);
      expect(status, text.slice(0, 100)).toBe(201);
      const { body } = await send('GET', `papers/one/${id}`);
      expect(JSON.stringify(body[field])).toBe(JSON.stringify(JSON.parse(text)));
      expect((await send('PATCH', `papers/one/${id}`, '{"title":"B"}')).body[field]).toEqual(JSON.parse(text));
      expect((await send('PUT', `papers/one/${id}`, `{"${field}":${text}}`)).status).toBe(200);
    }
});

class Paper {
  readonly pages = 1;
}
const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
const gaps: unknown[] = [];
gaps[1] = 1;
const values: [string, unknown][] = [
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
  ['a BigInt', 1n],
  ['a Date', new Date(0)],
  ['an invalid Date', new Date(Number.NaN)],
  ['a Map', new Map([['a', 1]])],
  ['a Set', new Set([1])],
  ['a typed array', new Uint8Array(2)],
  ['a buffer', new ArrayBuffer(2)],
  ['an instance of a class', new Paper()],
  ['an object with another prototype', Object.create({ a: 1 })],
  ['a boxed number', Object(1)],
  ['a URL', new URL('https://example.com')],
  ['a function', () => 1],
  ['a symbol', Symbol('a')],
  ['a member named by a symbol', { [Symbol('a')]: 1 }],
  ['an object with toJSON', { toJSON: () => 1 }],
  ['an array with gaps', gaps],
  ['an array with undefined', [undefined]],
  ['an array with another member', Object.assign([1], { a: 1 })],
  ['a promise', Promise.resolve(1)],
  ['an error', new Error('a')],
  ['a regular expression', /a/],
  ['an object that contains itself', cyclic],
  ['half of a surrogate pair', '\ud800'],
  ['the name __proto__', JSON.parse('{"__proto__":1}')],
];

describe('the store', () => {
  test.each(values)('throws for %s, says where, and changes nothing', async (_, value) => {
    for (const [given, path] of [
      [value, 'free'],
      [{ a: [0, value] }, 'free.a.1'],
    ] as const) {
      const key = await stored();
      const other = fresh();
      const before = await read(key);
      const error = { code: 'invalid-input', field: expect.stringContaining(path) };
      const change = { free: given };
      await expect(store.papers.create({ ...other, ...change })).rejects.toMatchObject(error);
      await expect(store.papers.put(key, change)).rejects.toMatchObject(error);
      await expect(store.papers.replace(key, change)).rejects.toMatchObject(error);
      await expect(store.papers.update(key, change)).rejects.toMatchObject(error);
      await expect(store.papers.update(key, change, { return: 'minimal' })).rejects.toMatchObject(error);
      const [outcome] = await store.papers.batch([{ patch: { ...key, ...change } }]);
      expect(outcome).toMatchObject(error);
      await expect(store.transact([{ papers: { put: { ...key, ...change } } }])).rejects.toMatchObject(error);
      expect([await read(key), await read(other)]).toEqual([before, undefined]);
    }
  });

  test('drops undefined members of objects, as absent ones', async () => {
    const key = fresh();
    await store.papers.put(key, { title: undefined, free: { a: undefined, b: 1 } });
    expect(await read(key)).toEqual({ ...key, free: { b: 1 } });
  });

  test.each([
    ['NaN', { pages: Number.NaN }],
    ['a Map', new Map([['pages', 3]])],
    ['a Map of comparisons', { pages: new Map([['ge', 3]]) }],
    ['a Date', { title: new Date(0) }],
    ['a number', 5],
    ['the name __proto__', JSON.parse('{"__proto__":{"eq":1}}')],
    ['a name of all objects', { constructor: 1 }],
  ])('throws for %s in a filter, which would otherwise return everything', async (_, where) => {
    const listing = store.papers.range({ shelf: 'one' }, { where: where as object });
    await expect(listing.page()).rejects.toMatchObject({ code: 'invalid-input' });
  });
});

describe('the typed client', () => {
  let sent = 0;
  const client = createClient<typeof model>({
    url: 'http://app/api',
    token: 'x',
    retries: 0,
    fetch: async (input, init = {}) => {
      const path = String(input).replace('http://app/api/', '');
      if (init.method !== 'GET') sent += 1;
      const body = init.body === undefined ? undefined : new TextEncoder().encode(String(init.body));
      const headers = { ...(init.headers as Record<string, string>), ...JSON_TYPE };
      const more = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
      const reply = await app.ask({ ...clerk, roles: ['clerk', 'operator'] }, init.method as 'GET', path, body, more);
      return new Response(reply.status === 204 ? null : reply.text, reply);
    },
  });

  test.each(values)('throws for %s, says where, and sends nothing', async (_, value) => {
    const key = await stored();
    const before = await read(key);
    await client.papers.get(key);
    sent = 0;
    for (const [given, path] of [
      [value, 'free'],
      [{ a: [0, value] }, 'free.a.1'],
    ] as const) {
      const change = { free: given };
      const error = { code: 'invalid-input', message: expect.stringContaining(path) };
      await expect(client.papers.create({ ...fresh(), ...change })).rejects.toMatchObject(error);
      await expect(client.papers.put(key, change)).rejects.toMatchObject(error);
      await expect(client.papers.update(key, change)).rejects.toMatchObject(error);
      await expect(client.papers.update(key, change, { return: 'minimal' })).rejects.toMatchObject(error);
      await expect(client.papers.batch([{ patch: { ...key, ...change } }])).rejects.toMatchObject(error);
      await expect(client.transact([{ papers: { put: { ...key, ...change } } }])).rejects.toMatchObject(error);
      await expect(client.operations.echo(change)).rejects.toMatchObject(error);
    }
    expect([sent, await read(key)]).toEqual([0, before]);
  });

  test.each([
    ['NaN', { pages: Number.NaN }],
    ['a Map', new Map([['pages', 3]])],
    ['a Date', { title: new Date(0) }],
    ['the name __proto__', JSON.parse('{"__proto__":{"eq":1}}')],
  ])('throws for %s in a filter, which would otherwise return everything', async (_, where) => {
    const error = { code: 'invalid-input' };
    const listing = client.papers.range({ shelf: 'one' }, { where: where as object });
    await expect(listing.page()).rejects.toMatchObject(error);
    const query = client.query((reads) => ({ some: reads.papers.range({ shelf: 'one' }, { where: where as object }) }));
    await expect(query).rejects.toMatchObject(error);
  });
});

describe('a query', () => {
  test.each([
    ['{"__proto__":{"title":"B"}}', 'where.__proto__'],
    ['{"title":{"__proto__":{"eq":"B"}}}', 'where.title.__proto__'],
    ['{"pages":{"ge":1e400}}', 'where.pages.ge'],
    ['{"pages":{"ge":1,"ge":2}}', 'where.pages.ge'],
  ])('with the filter %s is rejected, and does not return everything', async (where, path) => {
    const { status, body } = await send(
      'POST',
      'query',
      `{"reads":{"some":{"range":"papers","partition":{"shelf":"one"},"where":${where}}}}`,
    );
    expect([status, body]).toMatchObject([400, { field: `reads.some.${path}` }]);
  });

  test('names a number beyond all doubles in a query string', async () => {
    const { status, body } = await send('GET', 'papers/one?pages=1e400');
    expect([status, body.detail]).toEqual([400, '"pages" must be a number; got a number beyond 1.8e308.']);
  });
});

describe('an operation of the app', () => {
  test('rejects an input, and does not return an output, that JSON cannot hold', async () => {
    expect(await send('POST', 'echo', '{"free":{"a":1e400}}')).toMatchObject({
      status: 400,
      body: { field: 'free.a' },
    });
    for (const [, value] of values) {
      returned = { value: { a: value } };
      expect(await send('POST', 'echo', '{"free":1}')).toMatchObject({ status: 500, body: { code: 'wrong-output' } });
    }
    returned = undefined;
    expect((await send('POST', 'echo', '{"free":[1]}')).body).toEqual({ free: [1] });
  });
});

test('a derived field that JSON cannot hold is rejected', async () => {
  const { status, body } = await send('POST', 'sales', '{"id":"a","shop":"one","amount":1e308}');
  expect([status, body]).toMatchObject([400, { field: 'more' }]);
  expect((await send('GET', 'sales/a')).status).toBe(404);
});

test('a sum beyond all doubles is the largest double, and exact again afterwards', async () => {
  for (const id of ['1', '2', '3'])
    for (const [shop, sign] of [
      ['high', ''],
      ['low', '-'],
    ])
      await send('POST', 'sales', `{"id":"${shop}${id}","shop":"${shop}","amount":${sign}8e307}`);
  const sumOf = async (shop: string) => (await send('GET', `sales/totals/ofShop/${shop}`)).body.sum.amount;
  expect([await sumOf('high'), await sumOf('low')]).toEqual([Number.MAX_VALUE, -Number.MAX_VALUE]);
  await store.sales.delete({ id: 'high1' });
  expect(await sumOf('high')).toBe(1.6e308);
});
