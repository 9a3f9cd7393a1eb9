import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';
import { groupsModel } from './groups-model.ts';

/** Transactions over HTTP, under the roles and the rules on rows of the groups. */

let app: Awaited<ReturnType<typeof openAccessApp>>;
const auditor = { subject: 'audit', roles: ['auditor'] };
const user = (subject: string) => ({ subject, roles: ['user'] });

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, groupsModel);
});

let counter = 0;
async function newGroup(): Promise<string> {
  counter += 1;
  const groupId = `g${counter}`;
  const member = (userId: string, role: string) => ({ members: { create: { groupId, userId, role } } });
  const actions = [member('ann', 'admin'), member('bob', 'member')];
  const { status, body } = await app.ask(auditor, 'POST', 'transact', { actions });
  expect([status, body]).toEqual([
    200,
    {
      results: ['ann', 'bob'].map((userId) => ({ status: 201, etag: expect.any(String), key: { groupId, userId } })),
    },
  ]);
  return groupId;
}

const expense = (groupId: string, expenseId: string, paidBy: string, more = {}) => ({
  expenses: { create: { groupId, expenseId, paidBy, amount: 5, status: 'draft', ...more } },
});
const listed = async (groupId: string) => (await app.ask(auditor, 'GET', `expenses/${groupId}`)).body.items;

test('writes what the rules allow, and tells what has become of each action', async () => {
  const groupId = await newGroup();
  await app.ask(user('bob'), 'POST', 'expenses', expense(groupId, `${groupId}a`, 'bob').expenses.create);
  const { status, body } = await app.ask(user('bob'), 'POST', 'transact', {
    actions: [
      expense(groupId, `${groupId}b`, 'bob', { note: 'Taxi' }),
      { expenses: { patch: { groupId, expenseId: `${groupId}a`, amount: 7 } } },
    ],
  });
  expect([status, body.results.map((one: { status: number }) => one.status)]).toEqual([200, [201, 200]]);
  expect(await listed(groupId)).toMatchObject([{ amount: 7 }, { note: 'Taxi' }]);
});

test.each<[string, string, (groupId: string) => object, number]>([
  ['a row of another payer', 'bob', (groupId) => expense(groupId, 'x', 'ann'), 403],
  [
    'a row of another entity',
    'bob',
    (groupId) => ({ members: { create: { groupId, userId: 'x', role: 'admin' } } }),
    403,
  ],
  ['a row out of reach', 'cid', (groupId) => ({ members: { patch: { groupId, userId: 'bob', role: 'admin' } } }), 404],
  [
    'a row that does not exist',
    'ann',
    (groupId) => ({ members: { patch: { groupId, userId: 'x', role: 'admin' } } }),
    404,
  ],
  ['an invalid row', 'ann', (groupId) => ({ members: { create: { groupId, userId: 'x', role: 'x' } } }), 400],
  ['no entity', 'ann', () => ({ nothing: { create: {} } }), 400],
  ['two entities', 'ann', () => ({ members: { create: {} }, expenses: { create: {} } }), 400],
])('writes nothing if one action is on %s, and names the action', async (_, subject, failing, status) => {
  const groupId = await newGroup();
  const first = expense(groupId, `${groupId}a`, subject);
  const reply = await app.ask(user(subject), 'POST', 'transact', { actions: [first, failing(groupId)] });
  // Whoever is not in the group cannot write the first row either.
  const at = subject === 'cid' ? [403, 0] : [status, 1];
  expect(reply.status).toBe(at[0]);
  expect(reply.body.detail).toContain(`The action at ${at[1]}`);
  expect(await listed(groupId)).toEqual([]);
});

test('needs the role of each action', async () => {
  const actions = [expense('g', 'x', 'bob')];
  expect((await app.ask({ subject: 'bob', roles: ['payer'] }, 'POST', 'transact', { actions })).status).toBe(403);
  expect((await app.ask({ subject: 'bob', roles: [] }, 'POST', 'transact', { actions })).status).toBe(403);
});

test('needs the role of each action also where no rule limits rows', async () => {
  const entityOf = (name: string, role: string) =>
    defineEntity(name, {
      schema: z.object({ desk: z.string(), id: z.string() }),
      table: 'desks',
      key: { partition: '{desk}', row: `${name}_{id}` },
      access: { read: ['clerk', 'smith'], write: [role] },
    });
  const entities = [entityOf('pens', 'clerk'), entityOf('tools', 'smith')];
  const model = defineModel({ roles: ['clerk', 'smith', 'operator'], operatorRole: 'operator', entities });
  const desks = await openAccessApp(import.meta.url, model);
  const clerk = { subject: 'ann', roles: ['clerk'] };
  const create = { create: { desk: 'd', id: '1' } };
  const both = { actions: [{ pens: create }, { tools: create }] };
  expect(await desks.ask(clerk, 'POST', 'transact', both)).toMatchObject({
    status: 403,
    body: { code: 'forbidden', detail: expect.stringContaining('The action at 1') },
  });
  expect((await desks.ask(clerk, 'GET', 'pens/d')).body.items).toEqual([]);
  expect((await desks.ask({ ...clerk, roles: ['clerk', 'smith'] }, 'POST', 'transact', both)).status).toBe(200);
});

test('is executed once under an Idempotency-Key', async () => {
  const groupId = await newGroup();
  const body = { actions: [expense(groupId, `${groupId}a`, 'bob'), expense(groupId, `${groupId}b`, 'bob')] };
  const send = (key: string) => app.ask(user('bob'), 'POST', 'transact', body, { 'idempotency-key': key });
  const first = await send('k1');
  expect(first.status).toBe(200);
  expect(await send('k1')).toMatchObject({ status: 200, body: first.body });
  expect((await send('k2')).status).toBe(409);
  expect(await listed(groupId)).toHaveLength(2);
});

test('a repeated request tells no ETag of rows that are out of reach by then, or deleted', async () => {
  const groupId = await newGroup();
  const create = (id: string) => expense(groupId, groupId + id, 'ann');
  const former = { groupId, expenseId: `${groupId}c` };
  await app.ask(auditor, 'POST', 'expenses', create('c').expenses.create);
  const actions = [create('a'), create('b'), { expenses: { delete: former } }];
  const send = () => app.ask(user('ann'), 'POST', 'transact', { actions }, { 'idempotency-key': 'k3' });
  const etags = async () => (await send()).body.results.map(({ etag }: { etag?: string }) => etag);
  expect(await etags()).toEqual([expect.any(String), expect.any(String), undefined]);
  await app.ask(auditor, 'POST', 'expenses', create('c').expenses.create);
  expect(await etags()).toEqual([expect.any(String), expect.any(String), undefined]);
  await app.ask(auditor, 'DELETE', `members/${groupId}/ann`);
  expect(await etags()).toEqual([undefined, undefined, undefined]);
});

test('is explained without being executed', async () => {
  const groupId = await newGroup();
  const actions = [expense(groupId, `${groupId}a`, 'ann'), { members: { delete: { groupId, userId: 'bob' } } }];
  const { status, body } = await app.ask(auditor, 'POST', 'transact?explain=true', { actions });
  expect(status).toBe(200);
  expect(body.steps.filter((step: { write?: string }) => step.write === 'rows').length).toBeGreaterThan(0);
  expect(await listed(groupId)).toEqual([]);
});

test('is explained only to a caller who may read every row of its tables', async () => {
  const groupId = await newGroup();
  const actions = [expense(groupId, `${groupId}a`, 'bob')];
  expect((await app.ask(user('bob'), 'POST', 'transact?explain=true', { actions })).status).toBe(403);
});

test('is recorded in the audit log, one change for each action', async () => {
  const groupId = await newGroup();
  const [from, to] = [-60_000, 60_000].map((later) => new Date(Date.now() + later).toISOString());
  const operator = { subject: 'op', roles: ['operator', 'auditor'] };
  const { body } = await app.ask(operator, 'GET', `operations/audit?from=${from}&to=${to}&top=1000`);
  const changes = body.items.filter((one: { partition: string }) => one.partition === groupId);
  expect(changes).toMatchObject(
    ['member_ann', 'member_bob'].map((row) => ({ entity: 'members', operation: 'create', by: 'audit', row })),
  );
});

test('a page goes on for the caller who got it alone', async () => {
  const groupId = await newGroup();
  const [ann, bob] = [user('ann'), user('bob')];
  const { headers } = await app.ask(ann, 'GET', `members/${groupId}?top=1`);
  const next = /^<\/api\/([^>]+)>/.exec(headers.get('link') ?? '')?.[1] ?? '';
  expect((await app.ask(ann, 'GET', next)).status).toBe(200);
  expect(await app.ask(bob, 'GET', next)).toMatchObject({ status: 400, body: { field: 'continuation' } });

  const read = { range: 'members', partition: { groupId }, top: 1 };
  const { continuation } = (await app.ask(ann, 'POST', 'query', { reads: { read } })).body.reads.read;
  const goOn = { reads: { read: { ...read, continuation } } };
  expect((await app.ask(ann, 'POST', 'query', goOn)).body.reads.read.status).toBe(200);
  expect((await app.ask(bob, 'POST', 'query', goOn)).body.reads.read).toMatchObject({ status: 400 });
});
