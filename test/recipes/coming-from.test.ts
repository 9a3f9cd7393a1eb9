import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { createTestStore } from '../../lib/testing/index.ts';
import { model } from './coming-from.ts';

/** What docs/coming-from.md says of its examples. */

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const person = (name: string, role = 'user') => ({ subject: name, roles: [role], claims: {} });
let all: Awaited<ReturnType<typeof createTestStore<typeof model.entities>>>['store'];
beforeEach(async () => {
  all = (await createTestStore(model)).store;
});

test('shows the declarations and the calls that the tests run', () => {
  const [, ...here] = read('../../docs/coming-from.md').split('\nIn Rowkey:\n\n```ts\n');
  expect(here).toHaveLength(6);
  const run = [read('coming-from.ts'), read('coming-from.test.ts')].join('\n').split('\n');
  const lines = new Set(run.map((line) => line.trim()));
  const shown = here.flatMap((text) => text.split('\n```\n', 1)[0]?.split('\n') ?? []);
  expect(shown.map((line) => line.trim()).filter((line) => line !== '' && !lines.has(line))).toEqual([]);
});

test('Firestore: members of a group read its expenses, the newest first', async () => {
  const groupId = 'g';
  await all.members.create({ groupId, userId: 'ann' });
  const store = all.as(person('ann'));
  for (const day of ['20', '22', '21']) {
    const expense = { groupId, paidAt: `2026-11-${day}T00:00:00.000Z`, expenseId: day, paidBy: 'ann' };
    await store.expenses.create(expense);
  }
  const { items } = await store.expenses.range({ groupId }).page({ top: 20 });
  expect(items.map(({ expenseId }) => expenseId)).toEqual(['22', '21', '20']);
  const eve = all.as(person('eve'));
  expect((await eve.expenses.range({ groupId }).page()).items).toEqual([]);
  const forged = { groupId, paidAt: '2026-11-20T00:00:00.000Z', expenseId: 'x', paidBy: 'bob' };
  await expect(store.expenses.create(forged)).rejects.toMatchObject({ code: 'forbidden' });
});

test('Supabase: a slug is unique, and a draft is seen by its author alone', async () => {
  const store = all.as(person('ann'));
  const slug = 'hello';
  await store.posts.create({ slug, status: 'draft' });
  const post = await store.posts.by.slug({ slug });
  expect(post).toMatchObject({ author: 'ann', status: 'draft' });
  const bob = all.as(person('bob'));
  expect(await bob.posts.by.slug({ slug })).toBeUndefined();
  await expect(bob.posts.create({ slug, status: 'published' })).rejects.toMatchObject({ code: 'duplicate-value' });
  if (post) await store.posts.update(post, { status: 'published' });
  expect(await bob.posts.by.slug({ slug })).toMatchObject({ status: 'published' });
});

test('PocketBase: a tool has one open loan, and a borrower sees the own loans', async () => {
  const [store, bob] = [all.as(person('ann')), all.as(person('bob'))];
  const { values: loan } = await store.loans.create({ tool: 'drill' });
  await expect(bob.loans.create({ tool: 'drill' })).rejects.toMatchObject({ code: 'duplicate-value' });
  const mine = await Array.fromAsync(store.loans.mine());
  expect(mine).toEqual([loan]);
  expect(await Array.fromAsync(bob.loans.mine())).toEqual([]);
  await store.loans.update(loan, { returned: '2026-11-20' });
  await bob.loans.create({ tool: 'drill' });
});

test('Amplify: an owner lists the open invoices of a month', async () => {
  const store = all.as(person('ann'));
  const owner = 'ann';
  for (const [invoiceId, status, day] of [
    ['1', 'open', '2026-11-20'],
    ['2', 'open', '2026-10-20'],
    ['3', 'paid', '2026-11-21'],
  ] as const)
    await store.invoices.create({ invoiceId, status, day });
  const open = store.invoices.by.status.range({ owner, status: 'open' }, { prefix: '2026-11' });
  expect(await Array.fromAsync(open, ({ invoiceId }) => invoiceId)).toEqual(['1']);
});

test('ElectroDB: tasks are found by their assignee, in all teams', async () => {
  const store = all.as(person('ann'));
  for (const teamId of ['a', 'b']) await store.tasks.create({ teamId, taskId: '1', assignee: 'ann' });
  await store.tasks.create({ teamId: 'a', taskId: '2' });
  const assigned = await Array.fromAsync(store.tasks.by.assignee.range({ assignee: 'ann' }));
  expect(assigned.map(({ teamId }) => teamId)).toEqual(['a', 'b']);
});

test('the SDK: an index lists the orders of a day', async () => {
  const store = all.as(person('clerk', 'clerk'));
  const order = { customerId: 'c', orderId: '1', orderDate: '2026-11-20', freight: 1 };
  await store.orders.create(order);
  expect(await Array.fromAsync(store.orders.by.date.range({ orderDate: '2026-11-20' }))).toEqual([order]);
});
