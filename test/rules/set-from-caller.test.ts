import { beforeAll, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineClaims, defineEntity, defineModel, type Input, oneOf, subject } from '../../lib/index.ts';
import { openAccessApp } from '../access-app.ts';
import { apiCalls } from '../kit/api.ts';

/** Fields that a create takes from the caller. */

const claims = defineClaims({ tenant: { verifiedBy: {} } });

const notes = defineEntity('notes', {
  schema: z.object({
    board: z.string(),
    noteId: z.string(),
    author: z.string(),
    tenant: z.string().optional(),
    text: z.string().default('none'),
    state: z.enum(['open', 'closed']).default('open'),
  }),
  table: 'notes',
  key: { partition: '{board}', row: 'note_{noteId}' },
  movable: ['board'],
  access: {
    read: ['user'],
    write: {
      create: ['user'],
      update: [{ role: 'user', where: { state: oneOf('open') } }],
      delete: ['user'],
    },
    set: { author: subject(), tenant: claims.tenant },
  },
});

/** The field is a part of the key, and nothing else limits the writers. */
const votes = defineEntity('votes', {
  schema: z.object({ poll: z.string(), voter: z.string(), choice: z.string() }),
  table: 'notes',
  key: { partition: '{poll}', row: 'vote_{voter}' },
  access: { read: ['user'], write: ['user'], set: { voter: subject() } },
});

const model = defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities: [notes, votes] });

let app: Awaited<ReturnType<typeof openAccessApp>>;
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
});

const as = (name: string, tenant: readonly string[] = ['acme']) => ({
  subject: name,
  roles: ['user'],
  claims: { tenant },
});
const [ann, bob] = [as('ann'), as('bob')];
const stored = async (path: string) => (await app.ask(ann, 'GET', path)).body;

test('a create takes the fields from the caller, and nobody else can be named', async () => {
  const { status, body } = await app.ask(ann, 'POST', 'notes', { board: 'b', noteId: '1' });
  expect([status, body]).toMatchObject([201, { author: 'ann', tenant: 'acme', text: 'none' }]);
  const same = { board: 'b', noteId: '2', author: 'ann', tenant: 'acme' };
  expect((await app.ask(ann, 'PUT', 'notes/b/2', same)).status).toBe(201);
  for (const [method, path, other] of [
    ['POST', 'notes', { ...same, noteId: '3', author: 'bob' }],
    ['PUT', 'notes/b/3', { author: 'bob' }],
    ['PUT', 'notes/b/3', { tenant: 'other' }],
  ] as const)
    expect(await app.ask(ann, method, path, other), JSON.stringify(other)).toMatchObject({
      status: 403,
      body: { code: 'forbidden', field: expect.stringMatching(/author|tenant/) },
    });
  expect((await app.ask(ann, 'GET', 'notes/b/3')).status).toBe(404);
});

test('a claim without a value, or with several, sets nothing', async () => {
  for (const tenant of [[], ['acme', 'other']]) {
    const noteId = `claims-${tenant.length}`;
    const put = (body: object) => app.ask(as('ann', tenant), 'PUT', `notes/b/${noteId}`, body);
    expect((await put({ tenant: 'acme' })).status).toBe(403);
    const { body } = await put({});
    expect(body).toMatchObject({ author: 'ann' });
    expect(body).not.toHaveProperty('tenant');
  }
});

test('an update by another caller keeps them, and cannot change them', async () => {
  await app.ask(ann, 'POST', 'notes', { board: 'b', noteId: '5' });
  const path = 'notes/b/5';
  const minimal = { prefer: 'return=minimal' };
  expect((await app.ask(bob, 'PUT', path, { text: 'put' })).body).toMatchObject({ author: 'ann', text: 'put' });
  expect((await app.ask(bob, 'PATCH', path, { text: 'patch', author: 'ann' })).body).toMatchObject({ text: 'patch' });
  expect((await app.ask(bob, 'PATCH', path, { text: 'merge' }, minimal)).status).toBe(204);
  const actions = [{ put: { board: 'b', noteId: '5', text: 'batch' } }];
  for (const [atomic, status] of [
    [false, 200],
    [true, 304],
  ])
    expect((await app.ask(bob, 'POST', 'notes/batch', { actions, atomic })).body.results[0].status).toBe(status);
  expect((await app.ask(bob, 'POST', 'transact', { actions: [{ notes: actions[0] }] })).status).toBe(200);
  const refused = [
    await app.ask(bob, 'PUT', path, { text: 'mine', author: 'bob' }),
    await app.ask(bob, 'PATCH', path, { author: 'bob' }),
    await app.ask(bob, 'PATCH', path, { tenant: null }),
    await app.ask(ann, 'PATCH', path, { author: 'bob' }, minimal),
  ];
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  expect(await stored(path)).toMatchObject({ author: 'ann', tenant: 'acme', text: 'batch' });
});

test('another caller may move the entity, which keeps them', async () => {
  await app.ask(ann, 'POST', 'notes', { board: 'b', noteId: '6' });
  const { status, body } = await app.ask(bob, 'POST', 'notes/b/6/move', { board: 'c' });
  expect([status, body.detail]).toEqual([202, undefined]);
});

test('each action of a batch and of a transaction takes them from its caller', async () => {
  const creates = (...ids: string[]) => ids.map((noteId) => ({ create: { board: 'b', noteId } }));
  const named = { create: { board: 'b', noteId: '13', author: 'bob' } };
  const { body } = await app.ask(ann, 'POST', 'notes/batch', { actions: [...creates('10', '11'), named] });
  expect(body.results.map((one: { status: number }) => one.status)).toEqual([201, 201, 403]);
  const both = [{ notes: creates('12')[0] }, { votes: { create: { poll: 'b', choice: 'yes' } } }];
  const transact = (actions: object[]) => app.ask(ann, 'POST', 'transact', { actions });
  expect((await transact([...both, { notes: named }])).status).toBe(403);
  expect((await transact(both)).status).toBe(200);
  expect([await stored('notes/b/11'), await stored('notes/b/12')]).toMatchObject([
    { author: 'ann' },
    { author: 'ann' },
  ]);
  expect(await stored('votes/b/ann')).toMatchObject({ voter: 'ann', choice: 'yes' });
});

test('a repeated create returns the entity of its first attempt', async () => {
  const create = () => app.ask(ann, 'POST', 'votes', { poll: 'again', choice: 'no' }, { 'idempotency-key': 'k1' });
  const [first, again] = [await create(), await create()];
  expect([first.status, again.status, again.body]).toEqual([201, 201, first.body]);
  const actions = [{ votes: { create: { poll: 'both', choice: 'no' } } }];
  const transact = () => app.ask(ann, 'POST', 'transact', { actions }, { 'idempotency-key': 'k2' });
  expect([await transact(), await transact()].map(({ status }) => status)).toEqual([200, 200]);
});

test('a part of the key can be set, and a caller has no row of another', async () => {
  expect((await app.ask(ann, 'PUT', 'votes/p/ann', { choice: 'yes' })).status).toBe(201);
  expect((await app.ask(ann, 'PUT', 'votes/p/bob', { choice: 'yes' })).status).toBe(403);
  expect((await app.ask(ann, 'POST', 'votes', { poll: 'p', choice: 'no' })).status).toBe(409);
});

test('the app itself names them, and its callers may leave them out', async () => {
  const source = { engine: async () => app.engine, record: <Done>(_: string, write: () => Promise<Done>) => write() };
  const store = apiCalls.createStore<typeof model.entities>(model.list, source);
  await store.notes.create({ board: 'b', noteId: '20', author: 'bob' });
  await store.notes.update({ board: 'b', noteId: '20' }, { author: 'cid' });
  await expect(store.notes.create({ board: 'b', noteId: '21' })).rejects.toMatchObject({ field: 'author' });
  const { values } = await store.as({ ...ann, claims: {} }).notes.create({ board: 'b', noteId: '22' });
  expect(values.author).toBe('ann');
  type Vote = Input<(typeof model.entities)['votes']>;
  expectTypeOf<Vote>().toEqualTypeOf<{ poll: string; choice: string; voter?: string }>();
});

test('the description of the API has them as optional, and a patch without them', async () => {
  const { body } = await app.ask(ann, 'GET', 'openapi.json');
  const of = (method: string, path: string) => {
    // biome-ignore lint/suspicious/noExplicitAny: a parsed document
    const [{ schema }] = Object.values<any>(body.paths[path][method].requestBody.content);
    return schema.$ref ? body.components.schemas[schema.$ref.split('/').at(-1)] : schema;
  };
  expect(of('post', '/api/notes')).toMatchObject({ required: ['board', 'noteId'], properties: { author: {} } });
  expect(of('patch', '/api/notes/{board}/{noteId}').properties).not.toHaveProperty('author');
  const described = (await app.ask(ann, 'GET', 'model')).body.entities.notes;
  expect(described.fields.author).toMatchObject({ generated: true, optional: false });
});
