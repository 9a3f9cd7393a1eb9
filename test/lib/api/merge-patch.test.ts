import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../../lib/client/index.ts';
import { defineEntity, defineModel, type UnlimitedStore } from '../../../lib/index.ts';
import { openAccessApp } from '../../access-app.ts';
import { apiCalls } from '../../kit/api.ts';
import { storageRows } from '../../kit/storage.ts';

/** Merge patches (RFC 7396) at every door that changes some fields. */

const address = z.object({ street: z.string().optional(), zip: z.string().optional(), geo: z.json().optional() });
const people = defineEntity('people', {
  schema: z.object({
    town: z.string(),
    id: z.string(),
    name: z.string().optional(),
    data: z.json().optional(),
    home: address.optional(),
    history: z.json().optional(),
  }),
  table: 'people',
  key: { partition: '{town}', row: 'id_{id}' },
  access: { read: ['clerk'], write: ['clerk'] },
});
/** Its rows are divided. */
const files = defineEntity('files', {
  schema: z.object({
    id: z.string(),
    name: z.string().optional(),
    data: z.json().optional(),
    more: z.json().optional(),
  }),
  table: 'peoplefiles',
  key: { partition: '{id}', row: 'file' },
  split: { apart: ['data'] },
  access: { read: ['clerk'], write: ['clerk'] },
});
const wides = defineEntity('wides', {
  schema: z.object({ id: z.string(), name: z.string().optional(), data: z.json().optional() }),
  table: 'peoplewides',
  key: { partition: '{id}', row: 'wide' },
  wide: true,
  access: { read: ['clerk'], write: ['clerk'] },
});
const model = defineModel({
  entities: [people, files, wides],
  roles: ['clerk', 'operator'],
  operatorRole: 'operator',
});

let app: Awaited<ReturnType<typeof openAccessApp>>;
let store: UnlimitedStore<typeof model.entities>;
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
  const record = <Result>(_by: string, write: () => Promise<Result>) => write();
  store = apiCalls.createStore(model.list, { engine: async () => app.engine, limits: [], record });
});

const clerk = { subject: 'ann', roles: ['clerk', 'operator'] };
const client = createClient<typeof model>({
  url: 'http://app/api',
  token: 'x',
  retries: 0,
  fetch: async (input, { method, body, headers } = {}) => {
    const path = String(input).replace('http://app/api/', '');
    const more = Object.fromEntries(Object.entries({ ...headers }).filter(([, value]) => value !== undefined));
    const sent = body === undefined ? undefined : JSON.parse(String(body));
    const reply = await app.ask(clerk, method as 'GET', path, sent, more);
    return new Response(reply.status === 204 ? null : reply.text, reply);
  },
});

let count = 0;
const fresh = () => {
  count += 1;
  return { town: 'one', id: `p${count}` };
};

type Patch = Readonly<Record<string, unknown>>;
/** Any patch: the types know only those of the fields. */
const of = <Member>(member: Member) =>
  member as Member & ((key: object, patch: Patch, options?: object) => Promise<unknown>);
const doors: Record<string, (key: ReturnType<typeof fresh>, patch: Patch) => Promise<unknown>> = {
  PATCH: ({ town, id }, patch) => app.ask(clerk, 'PATCH', `people/${town}/${id}`, patch),
  'minimal PATCH': ({ town, id }, patch) =>
    app.ask(clerk, 'PATCH', `people/${town}/${id}`, patch, { prefer: 'return=minimal' }),
  batch: (key, patch) => app.ask(clerk, 'POST', 'people/batch', { actions: [{ patch: { ...key, ...patch } }] }),
  transact: (key, patch) =>
    app.ask(clerk, 'POST', 'transact', { actions: [{ people: { patch: { ...key, ...patch } } }] }),
  'the store': (key, patch) => of(store.people.update)(key, patch),
  'the store, minimal': (key, patch) => of(store.people.update)(key, patch, { return: 'minimal' }),
  'the client': (key, patch) => of(client.people.update)(key, patch),
};

describe.each(Object.entries(doors))('a patch by %s', (_, patch) => {
  test.each([
    // RFC 7396, appendix A.
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [undefined, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [{ constructor: 1 }, { toString: { a: 1 }, constructor: null }, { toString: { a: 1 } }],
    [
      { a: { b: { c: { d: 1, e: 2 } } } },
      { a: { b: { c: { d: null, f: [null] } } } },
      { a: { b: { c: { e: 2, f: [null] } } } },
    ],
    [{ a: 1 }, 'text', 'text'],
    ['text', { a: 1 }, { a: 1 }],
  ])('of %j by %j makes %j', async (data, change, wanted) => {
    const key = fresh();
    await store.people.put(key, { name: 'A', data, history: { kept: [1] } } as object);
    await patch(key, { data: change });
    expect((await store.people.get(key))?.values).toEqual({ ...key, name: 'A', data: wanted, history: { kept: [1] } });
  });

  test('merges objects that are declared, and rejects what they would become', async () => {
    const key = fresh();
    const home = { street: 'A', zip: '1', geo: { lat: 1, lon: 2 } };
    await store.people.put(key, { home });
    await patch(key, { home: { zip: '2', geo: { lat: null } } });
    expect((await store.people.get(key))?.values).toEqual({ ...key, home: { ...home, zip: '2', geo: { lon: 2 } } });
    await patch(key, { home: { zip: 3 } }).catch(() => undefined);
    expect((await store.people.get(key))?.values.home).toMatchObject({ street: 'A', zip: '2' });
    await patch(key, { home: null });
    expect((await store.people.get(key))?.values).toEqual(key);
  });
});

test('a minimal patch reads only to merge an object', async () => {
  const key = fresh();
  await store.people.put(key, { data: { a: 1 } });
  const cost = async (patch: object) => {
    const { status, headers } = await app.ask(clerk, 'PATCH', `people/one/${key.id}`, patch, {
      prefer: 'return=minimal',
    });
    expect(status).toBe(204);
    return Number(/desc="(\d+)/.exec(headers.get('server-timing') ?? '')?.[1]);
  };
  expect([await cost({ name: 'B' }), await cost({ data: [{ b: 1 }] }), await cost({ data: 'text' })]).toEqual([
    1, 1, 1,
  ]);
  expect(await cost({ data: { b: 1 } })).toBe(2);
});

test('a patch under an ETag merges what has this ETag', async () => {
  const key = fresh();
  const { etag } = await store.people.put(key, { data: { a: 1 } });
  const patch = (ifMatch: string, data: object) =>
    app.ask(clerk, 'PATCH', `people/one/${key.id}`, { data }, { 'if-match': ifMatch, prefer: 'return=minimal' });
  expect((await patch(etag, { b: 2 })).status).toBe(204);
  expect((await patch(etag, { c: 3 })).status).toBe(412);
  expect((await store.people.get(key))?.values.data).toEqual({ a: 1, b: 2 });
});

test('objects in further rows are merged', async () => {
  for (const name of ['files', 'wides'] as const) {
    await store[name].put({ id: '1' }, { name: 'A', data: { a: 1, b: { c: 1 } } });
    await app.ask(clerk, 'PATCH', `${name}/1`, { data: { b: { c: null, d: 2 } } });
    const { body } = await app.ask(clerk, 'GET', `${name}/1${name === 'files' ? '?include=apart' : ''}`);
    expect(body).toEqual({ id: '1', name: 'A', data: { a: 1, b: { d: 2 } } });
  }
});

test.each(['application/json-patch+json', 'application/vnd.api+json', 'application/problem+json'])(
  'a patch as %s is rejected',
  async (type) => {
    const key = fresh();
    await store.people.put(key, { data: { a: 1 } });
    const sent = await app.ask(clerk, 'PATCH', `people/one/${key.id}`, { data: { a: 2 } }, { 'content-type': type });
    expect(sent).toMatchObject({ status: 415, body: { accepted: 'application/merge-patch+json, application/json' } });
    expect((await store.people.get(key))?.values.data).toEqual({ a: 1 });
  },
);

describe('a row that another program stored deeper than the API accepts', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

  test.each([101, 1_000, 2_700, 5_400])(
    'of %i levels can be read, patched beside, listed, verified, replaced and deleted',
    { tags: ['slow'] },
    async (levels) => {
      const key = fresh();
      const path = `people/${key.town}/${key.id}`;
      await store.people.put(key, { name: 'A', data: 1 });
      const action = { kind: 'merge', row: `id_${key.id}`, properties: { data: nested(levels) }, etag: '*' } as const;
      await storageRows.submit(app.storage, { table: 'people', partition: key.town, actions: [action] });
      const text = nested(levels);
      expect((await app.ask(clerk, 'GET', path)).text).toContain(text);
      expect((await app.ask(clerk, 'GET', `people/${key.town}`)).text).toContain(text);
      expect((await app.ask(clerk, 'PATCH', path, { name: 'B' })).status).toBe(200);
      expect((await app.ask(clerk, 'PATCH', path, { name: 'C' }, { prefer: 'return=minimal' })).status).toBe(204);
      const after = await app.ask(clerk, 'GET', path);
      expect([after.body.name, after.text.includes(text)]).toEqual(['C', true]);
      const verified = await app.ask(clerk, 'POST', 'operations/verify/people');
      expect([verified.status, verified.body]).toMatchObject([200, {}]);
      expect((await app.ask(clerk, 'PUT', path, { data: 2 })).status).toBe(200);
      expect((await app.ask(clerk, 'DELETE', path)).status).toBe(204);
    },
  );
});
