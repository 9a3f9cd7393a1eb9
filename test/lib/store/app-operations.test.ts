import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../../lib/client/index.ts';
import {
  type Caller,
  createRowkey,
  defineEntity,
  defineModel,
  defineOperation,
  defineSeries,
  type Implementations,
  RowkeyError,
  subject,
} from '../../../lib/index.ts';
import { createTestStore, type MemoryStorage } from '../../../lib/testing/index.ts';
import { openAccessApp } from '../../access-app.ts';
import { samplePoints, sampleRuns } from '../../points.ts';

/** Operations that an app declares, over HTTP, through the client, and in process. */

const mine = { role: 'user', where: { owner: subject() } } as const;
const notes = defineEntity('notes', {
  schema: z.object({ owner: z.string(), noteId: z.uuid().default(() => randomUUID()), text: z.string() }),
  table: 'notes',
  key: { partition: '{owner}', row: 'note_{noteId}' },
  access: { read: ['auditor', mine], write: ['auditor', mine] },
});
const kinds = defineEntity('kinds', {
  schema: z.object({ family: z.string(), kind: z.string() }),
  table: 'kinds',
  key: { partition: '{family}', row: '{kind}' },
  maxAge: 60,
  access: { read: ['auditor'], write: ['auditor'] },
});
const visits = defineSeries('visits', {
  schema: z.object({ owner: z.string() }),
  table: 'visits',
  key: { partition: '{owner}', row: 'visits' },
  slots: { name: 'hour', first: 0, last: 3 },
  access: { read: ['auditor'], write: ['auditor'] },
});

const steps = z.array(z.enum(['create', 'transact', 'batch', 'increment'])).max(9);
const model = defineModel({
  roles: ['user', 'guest', 'auditor'],
  operatorRole: 'auditor',
  limits: [
    { role: 'guest', operation: 'greet', requests: 2, per: 'day' },
    { role: 'guest', operation: 'leak', requests: 1, per: 'day' },
  ],
  entities: [notes, kinds, visits],
  operations: [
    defineOperation('greet', {
      summary: 'Greet the caller',
      kind: 'read',
      roles: ['user', 'guest'],
      input: z.object({ name: z.string().min(1), loud: z.boolean().optional() }),
      output: z.object({ greeting: z.string() }),
    }),
    defineOperation('send', {
      summary: 'Write a note for somebody else, and keep a copy',
      kind: 'write',
      roles: ['user', 'auditor'],
      input: z.object({ to: z.string(), text: z.string() }),
      output: z.object({ noteId: z.uuid() }),
    }),
    defineOperation('peek', {
      summary: 'Read the note of somebody else',
      kind: 'read',
      roles: ['user'],
      input: z.object({ owner: z.string(), noteId: z.uuid() }),
      output: notes.schema.pick({ text: true }),
    }),
    defineOperation('meddle', {
      summary: 'Write, although it is declared as a read',
      kind: 'read',
      roles: ['user'],
      input: z.object({ by: z.enum(['store', 'unlimited', 'operation']) }),
      output: z.object({}),
    }),
    defineOperation('leak', {
      summary: 'Return what is not declared',
      kind: 'read',
      roles: ['user', 'guest'],
      input: z.object({}),
      output: z.object({ total: z.number() }),
    }),
    defineOperation('workThrough', {
      summary: 'Take steps, each once for a repeated request',
      kind: 'write',
      roles: ['auditor'],
      input: z.object({ owner: z.string(), steps }),
      output: z.object({ requestId: z.string() }),
      repeatable: true,
    }),
  ],
});

/** Called before each step of `workThrough`. */
let interrupt: () => void = () => undefined;
const called = vi.fn();
const operations: Implementations<typeof model> = {
  async greet({ input: { name, loud } }) {
    called();
    return { greeting: `Hello ${loud ? name.toUpperCase() : name}` };
  },
  async send({ input: { to, text }, caller, store, unlimited, isExplained }) {
    called({ isExplained });
    await store.notes.create({ owner: caller.subject, text });
    const by = to === 'robot' ? 'the robot' : undefined;
    const { values } = await unlimited.notes.create({ owner: to, text }, { by });
    return values;
  },
  async peek({ input, store }) {
    const found = await store.notes.get(input);
    if (!found) throw new RowkeyError('not-found', 'The note does not exist.');
    return found.values;
  },
  async meddle({ input: { by }, caller, store, unlimited }) {
    if (by === 'operation') await store.operations.send({ to: 'eve', text: 'x' });
    else await { store, unlimited }[by].notes.create({ owner: caller.subject, text: 'x' });
    return {};
  },
  leak: async () => ({ total: 'a secret' as unknown as number }),
  async workThrough({ input: { owner, steps }, requestId, store, unlimited }) {
    for (const [position, step] of steps.entries()) {
      interrupt();
      const note = { owner, text: String(position) };
      // Both stores number their calls together.
      const { notes, visits, transact } = position % 2 === 0 ? store : unlimited;
      if (step === 'create') await notes.create(note);
      else if (step === 'increment') await visits.increment({ owner }, position % 4, 1);
      else if (step === 'batch') await notes.batch([position % 3 === 0 ? { create: note } : { put: note }]);
      else await transact([{ notes: { create: note } }]);
    }
    return { requestId };
  },
};

let app: Awaited<ReturnType<typeof openAccessApp<typeof model>>>;
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model, { operations });
});
const as = (subject: string, role = 'user'): Caller => ({ subject, roles: [role], claims: {} });
const auditor = as('audit', 'auditor');
const notesOf = async (owner: string) => (await app.ask(auditor, 'GET', `notes/${owner}`)).body.items;

test('is called over HTTP with its input, and returns its output and its cost', async () => {
  const { status, body, headers } = await app.ask(as('ann'), 'POST', 'greet', { name: 'Ann', loud: true });
  expect([status, body]).toEqual([200, { greeting: 'Hello ANN' }]);
  expect(headers.get('server-timing')).toContain('desc="0 transactions"');
  expect((await app.ask(as('ann'), 'GET', 'greet')).status).toBe(405);
});

test.each<[string, string, unknown, number, object]>([
  ['a role that may not call it', 'auditor', {}, 403, { code: 'forbidden', accepted: 'user, guest' }],
  ['an input without a member', 'user', {}, 400, { field: 'name', detail: '"name" is required.' }],
  ['a misspelt member', 'user', { name: 'a', laud: true }, 400, { field: 'laud' }],
  ['a member of another type', 'user', { name: 'a', loud: 'no' }, 400, { field: 'loud' }],
  ['something other than an object', 'user', [], 400, { code: 'invalid-input' }],
])('is not called for %s', async (_, role, body, status, problem) => {
  called.mockClear();
  const response = await app.ask(as('ann', role), 'POST', 'greet', body);
  expect([response.status, response.body]).toMatchObject([status, problem]);
  expect(called).not.toHaveBeenCalled();
});

test('has the store of the caller and the one without rules, and the caller is the author of all changes', async () => {
  const from = new Date();
  const { status, body, headers } = await app.ask(as('bob'), 'POST', 'send', { to: 'eve', text: 'Hi' });
  expect([status, body]).toEqual([200, { noteId: expect.any(String) }]);
  // All changes are recorded together, at the end.
  expect(headers.get('server-timing')).toMatch(/desc="2 transactions", audit;/);
  expect((await app.ask(as('bob'), 'POST', 'send', { to: 'robot', text: 'Hi' })).status).toBe(200);
  expect(await notesOf('bob')).toMatchObject([{ text: 'Hi' }, { text: 'Hi' }]);
  expect(await notesOf('eve')).toEqual([{ owner: 'eve', noteId: body.noteId, text: 'Hi' }]);
  const bounds = new URLSearchParams({ from: from.toISOString(), to: new Date(Date.now() + 1_000).toISOString() });
  const { items } = (await app.ask(auditor, 'GET', `operations/audit?${bounds}`)).body;
  const changes = items.map(
    ({ by, operation, partition }: Record<string, string>) => `${by} ${operation}s ${partition}`,
  );
  expect(changes.toSorted()).toEqual([
    'bob creates bob',
    'bob creates bob',
    'bob creates eve',
    'the robot creates robot',
  ]);
  expect((await app.ask(as('bob'), 'POST', 'peek', { owner: 'eve', noteId: body.noteId })).status).toBe(404);
  expect((await app.ask(as('eve'), 'POST', 'peek', { owner: 'eve', noteId: body.noteId })).body).toEqual({
    text: 'Hi',
  });
});

test.each(['store', 'unlimited', 'operation'] as const)('a read cannot write: %s', async (by) => {
  expect((await app.ask(as('mallory'), 'POST', 'meddle', { by })).status).toBe(500);
  expect(await notesOf('mallory')).toEqual([]);
  const { store } = await createTestStore(model, { operations });
  await expect(store.as(as('mallory')).operations.meddle({ by })).rejects.toThrow('"meddle" is declared as a read');
});

test('an output that is not declared is a problem without it, and the log names the member', async () => {
  const { status, text, body } = await app.ask(as('ann'), 'POST', 'leak', {});
  expect([status, body.code]).toEqual([500, 'wrong-output']);
  expect(text).not.toContain('secret');
  expect(text).not.toContain('total');
  const { store } = await createTestStore(model, { operations });
  await expect(store.as(as('ann')).operations.leak({})).rejects.toMatchObject({
    code: 'wrong-output',
    message: 'The operation "leak" does not return what it declares: "total" must be a number; got a string.',
  });
});

test('an output that is missing is named in the log', async () => {
  const { store } = await createTestStore(model, {
    operations: { ...operations, leak: async () => undefined as never },
  });
  await expect(store.as(as('ann')).operations.leak({})).rejects.toThrow(
    'The operation "leak" does not return what it declares: what it returns is required.',
  );
});

test('a store of no caller is refused, which would be that of the app itself', async () => {
  const { store } = await createTestStore(model, { operations });
  for (const nobody of [undefined, {}, { subject: 'ann' }, 'ann'])
    expect(() => store.as(nobody as never)).toThrow('store.as needs a caller: { subject, roles, claims }.');
});

test('a limit of the operation counts its requests, over HTTP and in process', async () => {
  const call = async () => (await app.ask(as('gus', 'guest'), 'POST', 'greet', { name: 'Gus' })).status;
  expect([await call(), await call(), await call()]).toEqual([200, 200, 429]);
  const leak = async () => (await app.ask(as('gus', 'guest'), 'POST', 'leak', {})).status;
  expect([await leak(), await leak()]).toEqual([500, 429]);
  const { store } = await createTestStore(model, { operations });
  const { greet } = store.as(as('gus', 'guest')).operations;
  for (let times = 0; times < 2; times += 1) expect(await greet({ name: 'Gus' })).toEqual({ greeting: 'Hello Gus' });
  await expect(greet({ name: 'Gus' })).rejects.toMatchObject({
    code: 'too-many-requests',
    accepted: '2 requests of greet per day',
  });
});

test('an explanation needs a role that reads whole entities, and nothing is written', async () => {
  called.mockClear();
  const body = { to: 'zoe', text: 'x' };
  expect((await app.ask(as('ann'), 'POST', 'send?explain=true', body)).status).toBe(403);
  expect((await app.ask(as('ann'), 'POST', 'peek?explain=true', { owner: 'zoe', noteId: randomUUID() })).status).toBe(
    403,
  );
  expect(called).not.toHaveBeenCalled();
  const explained = await app.ask(auditor, 'POST', 'send?explain=true', body);
  expect([explained.status, explained.body.transactions]).toEqual([200, 2]);
  expect(called).toHaveBeenCalledWith({ isExplained: true });
  expect(await notesOf('zoe')).toEqual([]);
});

test('a repeated request takes each step once, wherever the first attempt stopped', { tags: ['slow'] }, async () => {
  const attempts = fc.asyncProperty(
    fc.array(fc.constantFrom(...steps.element.options), { maxLength: 6 }),
    fc.nat(6),
    async (given, stopAt) => {
      const owner = randomUUID();
      const headers = { 'idempotency-key': randomUUID() };
      const call = () => app.ask(auditor, 'POST', 'workThrough', { owner, steps: given }, headers);
      let left = stopAt;
      interrupt = () => {
        if (left === 0) throw new Error('stopped');
        left -= 1;
      };
      const first = await call();
      expect(first.status).toBe(stopAt < given.length ? 500 : 200);
      interrupt = () => undefined;
      const [second, third] = [await call(), await call()];
      expect([second.status, third.body]).toEqual([200, second.body]);
      const counts = [0, 0, 0, 0];
      for (const [position, step] of given.entries())
        if (step === 'increment') counts[position % 4] = Number(counts[position % 4]) + 1;
      const texts = given.flatMap((step, position) => (step === 'increment' ? [] : [String(position)]));
      expect((await notesOf(owner)).map(({ text }: { text: string }) => text).toSorted()).toEqual(texts);
      const series = await app.ask(auditor, 'GET', `visits/${owner}`);
      expect(series.body?.counts ?? [0, 0, 0, 0]).toEqual(given.includes('increment') ? counts : [0, 0, 0, 0]);
    },
  );
  await fc.assert(attempts, sampleRuns(40));
});

test.each(['the request', 'the reply', 'the reply, and the process died'])(
  'a repeated call takes each step once if a storage call lost %s',
  async (lost) => {
    const given = ['create', 'increment', 'transact', 'increment', 'batch'] as const;
    const attempt = async (intercept?: MemoryStorage['intercept']) => {
      const opened = await createTestStore(model, { operations });
      opened.storage.intercept = intercept;
      const call = () =>
        opened.store.as(auditor).operations.workThrough({ owner: 'o', steps: [...given] }, { requestId: 'once' });
      return { ...opened, call };
    };
    let calls = 0;
    const counted = await attempt(async (_, send) => {
      calls += 1;
      return send();
    });
    await counted.call();
    for (const point of samplePoints(calls, 2)) {
      let left = point;
      const { store, storage, settle, call } = await attempt(async (_, send) => {
        left -= 1;
        if (left > 0 || (left < 0 && !lost.includes('died'))) return send();
        if (left === 0 && lost !== 'the request') await send();
        throw new Error('lost');
      });
      await call().catch(() => undefined);
      storage.intercept = undefined;
      await call();
      await settle();
      const { items } = await store.notes.range({ owner: 'o' }).page();
      expect(items.map(({ text }) => text).toSorted(), `call ${point}`).toEqual(['0', '2', '4']);
      expect((await store.visits.get({ owner: 'o' }))?.counts, `call ${point}`).toEqual([0, 1, 0, 1]);
    }
  },
);

test('in process, a call with the same request id is recognized, for each caller apart', async () => {
  const { store } = await createTestStore(model, { operations });
  const call = async (by: string, options?: { requestId: string }) => {
    const { requestId } = await store
      .as(as(by, 'auditor'))
      .operations.workThrough({ owner: 'o', steps: ['create'] }, options);
    return requestId;
  };
  const once = { requestId: 'once' };
  const ids = [
    await call('ann', once),
    await call('ann', once),
    await call('bob', once),
    await call('ann'),
    await call('ann'),
  ];
  expect(ids[1]).toBe(ids[0]);
  expect(new Set(ids).size).toBe(4);
  expect((await store.notes.range({ owner: 'o' }).page()).items).toHaveLength(4);
});

/** A client of the app in this process. `lost` is the number of responses that it does not get. */
function connect(caller: Caller, lost = 0) {
  const sent: (readonly [path: string, key: string | null])[] = [];
  const client = createClient<typeof model>({
    url: 'http://app/api',
    async fetch(url, { method, headers, body } = {}) {
      const path = String(url).replace('http://app/api/', '');
      const given = new Headers(headers);
      sent.push([path, given.get('idempotency-key')]);
      const json = typeof body === 'string' ? JSON.parse(body) : undefined;
      const reply = await app.ask(caller, method === 'GET' ? 'GET' : 'POST', path, json, Object.fromEntries(given));
      if (path !== 'model' && lost-- > 0) throw new TypeError('fetch failed');
      return new Response(reply.text, { status: reply.status, headers: reply.headers });
    },
  });
  return { client, sent };
}

test('the client calls it, typed by the declaration, and explains it', async () => {
  const { client, sent } = connect(as('ann'));
  const { greeting } = await client.operations.greet({ name: 'Ann' });
  expect(greeting satisfies string).toBe('Hello Ann');
  // @ts-expect-error an operation of another name
  await expect(client.operations.great({ name: 'Ann' })).rejects.toMatchObject({ code: 'invalid-input' });
  // @ts-expect-error a member of another name
  await expect(client.operations.greet({ nam: 'Ann' })).rejects.toMatchObject({
    status: 400,
    problem: { field: 'name' },
  });
  expect(sent.map(([path]) => path)).toEqual(['model', 'greet', 'greet']);
  const { transactions } = await connect(auditor).client.explain.operations.send({ to: 'ann', text: 'x' });
  expect(transactions satisfies number).toBe(2);
});

test('the client repeats a read and a repeatable write whose response is lost, and no other write', async () => {
  const owner = randomUUID();
  const reading = connect(as('ann'), 1);
  expect(await reading.client.operations.greet({ name: 'Ann' })).toEqual({ greeting: 'Hello Ann' });
  const repeating = connect(auditor, 1);
  await repeating.client.operations.workThrough({ owner, steps: ['create', 'increment'] });
  const keys = repeating.sent.flatMap(([path, key]) => (path === 'workThrough' ? [key] : []));
  expect(keys).toEqual([expect.any(String), keys[0]]);
  expect(await notesOf(owner)).toHaveLength(1);
  const sending = connect(auditor, 1);
  await expect(sending.client.operations.send({ to: owner, text: 'x' })).rejects.toMatchObject({ code: 'network' });
  expect(sending.sent.map(([path]) => path)).toEqual(['model', 'send']);
});

test('the client reads entities again after an operation that writes', async () => {
  const { client, sent } = connect(auditor);
  const { values } = await client.kinds.create({ family: 'a', kind: 'b' });
  for (const calls of [client.operations.send, client.operations.send]) {
    for (let times = 0; times < 2; times += 1) await client.kinds.get(values);
    await calls({ to: 'kay', text: 'y' });
  }
  expect(sent.map(([path]) => path.split('/')[0])).toEqual(['model', 'kinds', 'kinds', 'send', 'kinds', 'send']);
});

test('OpenAPI and the model describe it', async () => {
  const { paths, components } = (await app.ask(auditor, 'GET', 'openapi.json')).body;
  const [greet, send, workThrough] = ['greet', 'send', 'workThrough'].map((name) =>
    JSON.stringify(paths[`/api/${name}`]),
  );
  expect(paths['/api/greet'].post).toMatchObject({ operationId: 'greet', summary: 'Greet the caller' });
  expect(greet).toMatch(/requestBody.*schemas\/GreetBody\b.*"200".*schemas\/Greet\b/);
  expect(components.schemas.GreetBody.required).toEqual(['name']);
  expect(components.schemas.Greet.required).toEqual(['greeting']);
  for (const path of [greet, send]) expect(path).not.toContain('Idempotency-Key');
  expect(workThrough).toContain('Idempotency-Key');
  const described = (await app.ask(auditor, 'GET', 'model')).body.operations;
  expect(Object.keys(described)).toEqual(Object.keys(model.operations));
  expect(described.send).toEqual({
    summary: 'Write a note for somebody else, and keep a copy',
    kind: 'write',
    roles: ['user', 'auditor'],
    repeatable: false,
  });
});

test('an instance needs an implementation for each operation, and no other', async () => {
  const { greet: _, ...others } = operations;
  const settings = { storage: { connectionString: '' }, auth: { issuer: '', audience: '', jwksUri: '' } };
  const missing = 'The operation "greet" has no implementation.';
  // @ts-expect-error an operation without an implementation
  expect(() => createRowkey({ model, ...settings, operations: others })).toThrow(missing);
  // @ts-expect-error a model with operations
  expect(() => createRowkey({ model, ...settings })).toThrow(missing);
  // @ts-expect-error an output of another type
  createRowkey({ model, ...settings, operations: { ...operations, greet: async () => ({ greting: 'Hello' }) } });
  const more = { ...operations, great: operations.greet };
  expect(() => createRowkey({ model, ...settings, operations: more })).toThrow(
    'The model has no operation "great" for its implementation.',
  );
  // @ts-expect-error no settings
  const without = createRowkey({ model, operations });
  await expect(without.store.notes.get({ owner: 'ann', noteId: '1' })).rejects.toThrow(
    'createRowkey needs storage and auth. Add ...fromEnvironment(process.env) to its options.',
  );
  const { store } = await createTestStore(model);
  await expect(store.as(as('ann')).operations.greet({ name: 'Ann' })).rejects.toThrow('needs an implementation');
});
