import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import type { UnlimitedStore } from '../../lib/index.ts';
import { makeExampleRequests } from '../../local/packs/example-requests.ts';
import { PNG } from '../../local/walk/png.ts';
import { openAccessApp } from '../../test/access-app.ts';
import { apiCalls } from '../../test/kit/api.ts';
import { model } from './model.ts';

/** What the rules of the model let each user do. What its functions and its page do is in page.test.ts. */

const DAY_MS = 86_400_000;
const groupId = randomUUID();
const clock = { ahead: 0 };
const now = () => Date.now() + clock.ahead;
const as = (subject: string) => ({ subject, roles: ['user'], claims: { email: `${subject}@contoso.com` } });
const [ann, bob, eve] = [as('ann'), as('bob'), as('eve')];

let app: Awaited<ReturnType<typeof openAccessApp>>;
/** Has no rules, like that of the functions. */
let store: UnlimitedStore<typeof model.entities>;
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model, { now });
  const record = <Result>(_by: string, write: () => Promise<Result>) => write();
  store = apiCalls.createStore(model.list, { engine: async () => app.engine, limits: [], record });
  await found(groupId, ann);
});

const send = async (caller: typeof ann, path: string, body: object) =>
  (await app.ask(caller, 'POST', path, body)).status;
const statusOf = async (caller: typeof ann, path: string) => (await app.ask(caller, 'GET', path)).status;
const itemsOf = async (caller: typeof ann, path: string) => (await app.ask(caller, 'GET', path)).body.items;

/** As the functions. */
const enter = (id: string, { subject, claims }: typeof ann, role: 'owner' | 'member') =>
  store.members.put({ groupId: id, userId: subject }, { name: claims.email, role });
async function found(id: string, owner: typeof ann) {
  await store.groups.create({ groupId: id, name: 'Flat' });
  await enter(id, owner, 'owner');
}
const join = (caller: typeof ann) => enter(groupId, caller, 'member');
const invite = () => ({ groupId, code: randomUUID(), expiresAt: new Date(now() + DAY_MS).toISOString() });

function makeExpense(paidBy: string) {
  return { groupId, expenseId: randomUUID(), paidBy, title: 'Rent', amount: 600, status: 'draft' as const };
}

test('a stranger sees nothing, and cannot come in', async () => {
  const expense = makeExpense('ann');
  expect(await send(ann, 'expenses', expense)).toBe(201);
  for (const path of [`groups/${groupId}`, `members/${groupId}/ann`, `expenses/${groupId}/${expense.expenseId}`])
    expect(await statusOf(eve, path), path).toBe(404);
  for (const path of ['groups', 'members', `members/${groupId}`, 'expenses', `expenses/${groupId}`])
    expect(await itemsOf(eve, path), path).toEqual([]);
  expect(await statusOf(eve, `expenses/totals/balances/${groupId}/ann`)).toBe(403);
  expect(await itemsOf(eve, 'members/by/userId/ann')).toEqual([]);
  const entry = { groupId, userId: 'eve', name: 'eve@contoso.com', role: 'owner' };
  expect(await send(eve, 'members', entry)).toBe(403);
  expect((await app.ask(eve, 'PUT', `members/${groupId}/eve`, entry)).status).toBe(403);
  expect((await app.ask(eve, 'PUT', `groups/${groupId}`, { groupId, name: 'Mine' })).status).toBe(403);
  expect(await send(eve, 'expenses', makeExpense('eve'))).toBe(403);
  expect(await send(eve, 'invitations', { groupId, code: randomUUID(), expiresAt: new Date().toISOString() })).toBe(
    403,
  );
});

test('a member sees the group, and not its invitations', async () => {
  await join(bob);
  const expense = makeExpense('ann');
  expect(await send(ann, 'expenses', expense)).toBe(201);
  expect(await itemsOf(bob, 'groups')).toMatchObject([{ groupId, name: 'Flat' }]);
  expect(await itemsOf(bob, `members/${groupId}`)).toMatchObject([{ userId: 'ann' }, { userId: 'bob' }]);
  expect(await statusOf(bob, `expenses/${groupId}/${expense.expenseId}`)).toBe(200);
  expect(await send(bob, 'invitations', invite())).toBe(403);
  expect(await send(ann, 'invitations', invite())).toBe(201);
  expect(await itemsOf(ann, `invitations/${groupId}`)).toHaveLength(1);
  expect(await itemsOf(bob, `invitations/${groupId}`)).toEqual([]);
});

test('only the payer changes a draft and its receipt, and nobody what is final', async () => {
  await join(bob);
  expect(await send(bob, 'expenses', makeExpense('ann'))).toBe(403);
  const expense = makeExpense('bob');
  const path = `expenses/${groupId}/${expense.expenseId}`;
  expect(await send(bob, 'expenses', expense)).toBe(201);
  const change = async (caller: typeof ann, patch: object) => (await app.ask(caller, 'PATCH', path, patch)).status;
  const attach = async (caller: typeof ann) => (await app.ask(caller, 'PUT', `${path}/receipt`, PNG)).status;
  expect([await change(bob, { amount: 500 }), await attach(bob)]).toEqual([200, 200]);
  expect([await change(ann, { amount: 1 }), await attach(ann)]).toEqual([403, 403]);
  expect([await statusOf(ann, `${path}/receipt`), await statusOf(eve, `${path}/receipt`)]).toEqual([200, 404]);
  expect(await change(ann, { status: 'final' })).toBe(403);
  expect(await change(bob, { status: 'final' })).toBe(200);
  for (const patch of [{ amount: 1 }, { status: 'draft' }]) expect(await change(bob, patch)).toBe(403);
  expect(await attach(bob)).toBe(403);
  expect((await app.ask(bob, 'DELETE', path)).status).toBe(403);
});

test('the balances are the sums of what is final, for members only', async () => {
  await join(bob);
  const paths = ['ann', 'bob'].map((user) => `expenses/totals/balances/${groupId}/${user}`);
  const sums = async () => Promise.all(paths.map(async (path) => (await app.ask(ann, 'GET', path)).body.sum.amount));
  await store.expenses.create({ ...makeExpense('bob'), status: 'final' });
  const [before = 0, ofBob] = await sums();
  for (const status of ['final', 'final', 'draft'] as const)
    await store.expenses.create({ ...makeExpense('ann'), amount: 0.1, status });
  expect(await sums()).toEqual([before + 0.2, ofBob]);
  expect(await itemsOf(bob, `expenses/totals/balances/${groupId}`)).toHaveLength(2);
  expect(await statusOf(eve, `expenses/totals/balances/${groupId}/ann`)).toBe(403);
});

test('an invitation is absent from its instant on', async () => {
  const invitation = invite();
  const path = `invitations/${groupId}/${invitation.code}`;
  expect(await send(ann, 'invitations', invitation)).toBe(201);
  expect(await statusOf(ann, path)).toBe(200);
  clock.ahead += DAY_MS;
  expect(await statusOf(ann, path)).toBe(404);
  expect(await store.invitations.by.code({ code: invitation.code })).toBeUndefined();
});

test('a member leaves, and the owner removes a member', async () => {
  const leave = async (caller: typeof ann, user: string) =>
    (await app.ask(caller, 'DELETE', `members/${groupId}/${user}`)).status;
  await join(bob);
  expect((await app.ask(bob, 'PATCH', `groups/${groupId}`, { name: 'House' })).status).toBe(403);
  expect(await leave(bob, 'ann')).toBe(403);
  expect(await leave(bob, 'bob')).toBe(204);
  expect(await itemsOf(bob, 'expenses')).toEqual([]);
  await join(bob);
  expect(await leave(ann, 'bob')).toBe(204);
  expect(await itemsOf(bob, 'expenses')).toEqual([]);
  expect((await app.ask(ann, 'DELETE', `groups/${groupId}`)).status).toBe(403);
  expect((await app.ask(ann, 'PATCH', `groups/${groupId}`, { name: 'House' })).status).toBe(200);
});

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

test('README.md shows the model', () => {
  expect(read('README.md')).toContain(`\`\`\`ts\n${read('model.ts')}\`\`\`\n`);
});

test('the functions have at most 40 lines, and the page 120', () => {
  const linesOf = (name: string) => read(name).trimEnd().split('\n').length;
  expect(linesOf('functions.ts')).toBeLessThanOrEqual(40);
  expect(linesOf('page/page.ts') + linesOf('page/index.html')).toBeLessThanOrEqual(120);
});

test('a member who leaves the app leaves the groups, and the balances of the others stay', async () => {
  const trip = randomUUID();
  const [dan, flo] = [as('dan'), as('flo')];
  await found(trip, dan);
  await enter(trip, flo, 'member');
  const spent = { ...makeExpense('dan'), groupId: trip, status: 'final' as const };
  await store.expenses.create(spent);
  const { body: data } = await app.ask(dan, 'GET', 'me/data');
  expect(data.items).toMatchObject([
    { entity: 'members', erasing: 'delete', values: { name: 'dan@contoso.com' } },
    { entity: 'expenses', erasing: 'change', values: { title: 'Rent' } },
  ]);
  expect((await app.ask(dan, 'DELETE', 'me/data')).body).toMatchObject({ deleted: 1, changed: 1, failed: 0 });
  expect(await itemsOf(dan, 'groups')).toEqual([]);
  expect(await itemsOf(flo, `members/${trip}`)).toMatchObject([{ userId: 'flo' }]);
  expect(await itemsOf(flo, `expenses/${trip}`)).toMatchObject([{ title: 'Deleted', amount: 600 }]);
  expect(await itemsOf(flo, `expenses/totals/balances/${trip}`)).toMatchObject([
    { group: { paidBy: 'former member' }, sum: { amount: 600 } },
  ]);
  expect((await app.ask(dan, 'GET', 'me/data')).body.items).toEqual([]);
});

test('an expense ends after it begins, whoever writes it', async () => {
  const expense = { ...makeExpense('ann'), from: '2026-11-20', to: '2026-11-19' };
  const { status, body } = await app.ask(ann, 'POST', 'expenses', expense);
  expect([status, body.detail]).toEqual([400, 'The entity is not valid: to must not be before from.']);
  expect(await send(ann, 'expenses', { ...expense, to: '2026-11-20' })).toBe(201);
  const path = `expenses/${groupId}/${expense.expenseId}`;
  expect((await app.ask(ann, 'PATCH', path, { from: '2026-11-21' })).status).toBe(400);
});

test('the support sees the groups of others, which the audit log says, and a visitor none', async () => {
  const support = { subject: 'sue', roles: ['support'], claims: { email: 'sue@contoso.com' } };
  expect(await itemsOf(support, `expenses/${groupId}`)).not.toEqual([]);
  const [from, to] = [-DAY_MS, DAY_MS].map((more) => new Date(now() + more).toISOString());
  const { body } = await app.ask(
    { subject: 'op', roles: ['operator', 'support'] },
    'GET',
    `operations/audit?from=${from}&to=${to}`,
  );
  expect(body.items).toContainEqual(expect.objectContaining({ by: 'sue', operation: 'read', entity: 'expenses' }));
  const visitor = { subject: '', roles: ['visitor'], claims: { email: '' } };
  expect(await statusOf(visitor, `expenses/${groupId}`)).toBe(401);
});

test('npm start proposes to create a group', () => {
  const { roles, requests } = makeExampleRequests(model, []) ?? {};
  expect([roles, requests]).toEqual([
    ['user'],
    [{ method: 'POST', path: '/api/createGroup', body: { name: 'example' } }],
  ]);
});

test('docs/use-as-a-package.md shows an operation and the functions', () => {
  const page = readFileSync(new URL('../../docs/use-as-a-package.md', import.meta.url), 'utf8');
  const [join] = /^const join = defineOperation.*?^\}\);\n/ms.exec(read('model.ts')) ?? [];
  for (const code of [join, read('functions.ts').replace('../../lib/index.ts', 'rowkey')])
    expect(page).toContain(`\`\`\`ts\n${code}\`\`\`\n`);
});
