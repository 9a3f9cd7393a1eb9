import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { type Ask, openAccessApp } from '../access-app.ts';
import { apiCalls } from '../kit/api.ts';
import { model } from './documented-model.ts';

/** What docs/access.md says of its examples. */

const page = readFileSync(new URL('../../docs/access.md', import.meta.url), 'utf8');
const [, section = ''] = /^## Rules on rows$(.*?)^### Terms$/ms.exec(page) ?? [];
const snippets = [...section.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);

let ask: Ask;
const auditor = { subject: 'aud', roles: ['auditor'] };
const operator = { subject: 'op', roles: ['operator'] };
const user = (subject: string) => ({ subject, roles: ['user'] });
const [ann, bob, eve] = [user('ann'), user('bob'), user('eve')];
const statusOf = async (...request: Parameters<Ask>) => (await ask(...request)).status;

beforeAll(async () => {
  ({ ask } = await openAccessApp(import.meta.url, model));
  for (const [userId, role] of Object.entries({ ann: 'member', bob: 'admin' }))
    expect(await statusOf(operator, 'POST', 'members', { groupId: 'flat', userId, role })).toBe(201);
});

test('docs/access.md shows the declarations that the tests run', () => {
  const code = readFileSync(new URL('documented-model.ts', import.meta.url), 'utf8');
  expect(snippets).toHaveLength(4);
  for (const snippet of snippets) expect(code).toContain(snippet);
});

test('docs/access.md asks why by a body that the API accepts', () => {
  const [, body = ''] = /operations\/why -d '(.*?)'$/ms.exec(page) ?? [];
  expect(apiCalls.WhyQuestion.parse(JSON.parse(body))).toEqual(JSON.parse(body));
});

test('users see and change their own notes', async () => {
  const note = { ownerId: 'ann', noteId: '1', text: 'Milk' };
  expect(await statusOf(bob, 'POST', 'notes', note)).toBe(403);
  expect(await statusOf(ann, 'POST', 'notes', note)).toBe(201);
  expect((await ask(ann, 'GET', 'notes')).body.items).toEqual([note]);
  expect((await ask(bob, 'GET', 'notes')).body.items).toEqual([]);
  const reads = [ann, bob, auditor].map((caller) => statusOf(caller, 'GET', 'notes/ann/1'));
  expect(await Promise.all(reads)).toEqual([200, 404, 200]);
});

test('members see the expenses of their group, payers change their drafts, and admins delete', async () => {
  const expense = { groupId: 'flat', expenseId: '1', paidBy: 'ann', amount: 5, status: 'draft' };
  const path = 'expenses/flat/1';
  expect(await statusOf(eve, 'POST', 'expenses', { ...expense, paidBy: 'eve' })).toBe(403);
  expect(await statusOf(ann, 'POST', 'expenses', { ...expense, paidBy: 'bob' })).toBe(403);
  expect(await statusOf(ann, 'POST', 'expenses', expense)).toBe(201);
  expect(await statusOf(bob, 'GET', path)).toBe(200);
  expect(await statusOf(eve, 'GET', path)).toBe(404);
  expect((await ask(eve, 'GET', 'expenses/flat')).body.items).toEqual([]);
  expect(await statusOf(bob, 'PATCH', path, { amount: 6 })).toBe(403);
  expect(await statusOf(ann, 'PATCH', path, { amount: 6 })).toBe(200);
  expect(await statusOf(ann, 'PATCH', path, { status: 'final' })).toBe(403);
  expect(await statusOf(ann, 'DELETE', path)).toBe(403);
  expect(await statusOf(bob, 'DELETE', path)).toBe(204);
});

test('borrowers cancel what they have requested, and owners approve it', async () => {
  const loan = { groupId: 'flat', borrower: 'ann', owner: 'bob', state: 'requested' };
  for (const [loanId, caller, state, other] of [
    ['1', ann, 'cancelled', bob],
    ['2', bob, 'approved', ann],
  ] as const) {
    const path = `loans/flat/${loanId}`;
    expect(await statusOf(ann, 'POST', 'loans', { ...loan, loanId })).toBe(201);
    const change = (by: typeof ann) => statusOf(by, 'PATCH', path, { state });
    const found = [await change(other), await change(eve), await change(caller), await change(caller)];
    expect(found).toEqual([403, 404, 200, 200]);
    expect(await statusOf(other, 'PATCH', path, { state: 'requested' })).toBe(403);
  }
});

test('everyone sees published reports, and managers all of their departments', async () => {
  const manager = { subject: 'max', roles: ['manager'], claims: { departments: ['sales', 'hr'] } };
  const draft = { department: 'sales', reportId: '1', status: 'draft' };
  const published = { department: 'sales', reportId: '2', status: 'published' };
  for (const report of [draft, published]) expect(await statusOf(manager, 'POST', 'reports', report)).toBe(201);
  expect(await statusOf(manager, 'POST', 'reports', { ...draft, department: 'law' })).toBe(403);
  expect((await ask(ann, 'GET', 'reports/sales')).body.items).toEqual([published]);
  expect((await ask(manager, 'GET', 'reports/sales')).body.items).toEqual([draft, published]);
});
