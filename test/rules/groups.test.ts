import { beforeAll, expect, test } from 'vitest';
import { openAccessApp } from '../access-app.ts';
import { openApp } from '../open-app.ts';
import { booksModel, groupsModel, notesModel, rowsOfPay } from './groups-model.ts';

let app: Awaited<ReturnType<typeof openAccessApp>>;
const auditor = { subject: 'audit', roles: ['auditor'] };
const user = (subject: string) => ({ subject, roles: ['user'] });

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, groupsModel);
  const put = async (path: string, body: unknown) =>
    expect((await app.ask(auditor, 'POST', path, body)).status).toBe(201);
  for (const [groupId, userId, role] of [
    ['g1', 'ann', 'admin'],
    ['g1', 'bob', 'member'],
    ['g2', 'cid', 'admin'],
  ])
    await put('members', { groupId, userId, role });
  for (const [groupId, expenseId, paidBy, status] of [
    ['g1', 'e1', 'ann', 'draft'],
    ['g1', 'e2', 'bob', 'final'],
    ['g2', 'e3', 'cid', 'draft'],
  ])
    await put('expenses', { groupId, expenseId, paidBy, status, amount: 5 });
});

test('a member reads the rows of the group, and nobody else does', async () => {
  const own = await app.ask(user('bob'), 'GET', 'expenses/g1/e1');
  expect(own.status).toBe(200);
  const other = await app.ask(user('cid'), 'GET', 'expenses/g1/e1');
  const none = await app.ask(user('cid'), 'GET', 'expenses/g1/e9');
  expect([other.status, none.status]).toEqual([404, 404]);
  expect(other.text.replaceAll('e1', '')).toBe(none.text.replaceAll('e9', ''));
  expect((await app.ask(user('bob'), 'GET', 'expenses/g1')).body.items).toHaveLength(2);
  expect((await app.ask(user('cid'), 'GET', 'expenses/g1')).body.items).toEqual([]);
});

test('writes', async () => {
  const created = await app.ask(user('bob'), 'POST', 'expenses', {
    groupId: 'g1',
    expenseId: 'n1',
    paidBy: 'bob',
    amount: 1,
    status: 'draft',
  });
  expect(created.status).toBe(201);
  expect(
    (
      await app.ask(user('bob'), 'POST', 'expenses', {
        groupId: 'g1',
        expenseId: 'n2',
        paidBy: 'ann',
        amount: 1,
        status: 'draft',
      })
    ).status,
  ).toBe(403);
  expect((await app.ask(user('bob'), 'PATCH', 'expenses/g1/n1', { amount: 2 })).status).toBe(200);
  expect((await app.ask(user('bob'), 'PATCH', 'expenses/g1/e2', { amount: 2 })).status).toBe(403);
  expect((await app.ask(user('bob'), 'PATCH', 'expenses/g1/n1', { paidBy: 'ann' })).status).toBe(403);
  expect((await app.ask(user('bob'), 'PATCH', 'expenses/g2/e3', { amount: 2 })).status).toBe(404);
  expect((await app.ask(user('bob'), 'DELETE', 'expenses/g1/n1')).status).toBe(403);
  expect((await app.ask(user('ann'), 'DELETE', 'expenses/g1/n1')).status).toBe(204);
});

test('the store of a caller follows the same rules', async () => {
  const { store } = openApp(import.meta.url, groupsModel);
  const [ofBob, ofCid] = ['bob', 'cid'].map((subject) => store.as({ subject, roles: ['user'], claims: {} }));
  const key = { groupId: 'g1', expenseId: 'e1' };
  expect((await ofBob?.expenses.get(key))?.values).toMatchObject(key);
  expect(await ofCid?.expenses.get(key)).toBeUndefined();
  await expect(ofCid?.expenses.update(key, { amount: 1 })).rejects.toMatchObject({ code: 'not-found' });
  await expect(ofBob?.expenses.update(key, { amount: 1 })).rejects.toMatchObject({ code: 'forbidden' });
  expect((await ofCid?.expenses.range({ groupId: 'g1' }).page())?.items).toEqual([]);
  expect((await store.expenses.get(key))?.values.amount).toBe(5);
});

test('mine lists the rows of all groups of the caller, page by page', async () => {
  await app.ask(auditor, 'POST', 'members', { groupId: 'g0', userId: 'bob', role: 'member' });
  await app.ask(auditor, 'POST', 'expenses', {
    groupId: 'g0',
    expenseId: 'z',
    paidBy: 'x',
    status: 'final',
    amount: 1,
  });
  const ids: string[] = [];
  let path = 'expenses?top=1';
  for (let pages = 0; path !== '' && pages < 10; pages += 1) {
    const page = await app.ask(user('bob'), 'GET', path);
    expect(page.status).toBe(200);
    ids.push(...page.body.items.map(({ expenseId }: { expenseId: string }) => expenseId));
    path = /<\/api\/(.*)>/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  }
  expect(ids).toEqual(['z', 'e1', 'e2']);
  expect((await app.ask(auditor, 'GET', 'expenses')).status).toBe(403);
  const { store } = openApp(import.meta.url, groupsModel);
  const mine = store.as({ subject: 'cid', roles: ['user'], claims: {} }).expenses.mine();
  expect((await mine.page()).items.map(({ expenseId }) => expenseId)).toEqual(['e3']);
});

test('a membership counts as soon as it is written by this process, and no longer than it lasts', async () => {
  const see = async () => (await app.ask(user('dan'), 'GET', 'expenses/g1/e1')).status;
  expect(await see()).toBe(404);
  await app.ask(user('ann'), 'POST', 'members', { groupId: 'g1', userId: 'dan', role: 'member' });
  expect(await see()).toBe(200);
  expect((await app.ask(user('dan'), 'DELETE', 'members/g1/dan')).status).toBe(403);
  expect((await app.ask(user('ann'), 'DELETE', 'members/g1/dan')).status).toBe(204);
  expect(await see()).toBe(404);
});

test('a restricted field is shown in the rows of its rule alone, under an ETag of its own', async () => {
  const { payslips } = rowsOfPay;
  const [ann, bob] = ['ann', 'bob'].map((subject) => ({ subject, roles: ['employee'] }));
  const pay = await openAccessApp(import.meta.url, rowsOfPay.model);
  const hr = { subject: 'hr', roles: ['hr'] };
  const row = { year: '2026', owner: 'ann', amount: 5, account: 'DE1' };
  expect((await pay.ask(hr, 'POST', payslips.name, row)).status).toBe(201);
  const path = `${payslips.name}/2026/ann`;
  const [mine, other, all] = [
    await pay.ask(ann ?? {}, 'GET', path),
    await pay.ask(bob ?? {}, 'GET', path),
    await pay.ask(hr, 'GET', path),
  ];
  expect(mine.body).toEqual(row);
  expect(other.body).toEqual({ year: '2026', owner: 'ann', amount: 5 });
  expect(all.body).toEqual(row);
  expect(mine.headers.get('etag')).not.toBe(other.headers.get('etag'));
  expect((await pay.ask(ann ?? {}, 'GET', `${path}?select=account`)).body).toEqual({ account: 'DE1' });
  expect((await pay.ask(bob ?? {}, 'GET', `${path}?select=account`)).body).toEqual({});
  expect((await pay.ask(bob ?? {}, 'GET', `${payslips.name}/2026`)).body.items).toEqual([other.body]);
  expect((await pay.ask(ann ?? {}, 'GET', `${payslips.name}/2026?account=DE1`)).status).toBe(403);
});

/** What docs/access.md says: a rule adds one transaction to the first read of a member. The last read has nothing but that. */
const COUNTED = {
  'an entity': 'expenses/g1/e1',
  'an entity, if it has changed': 'expenses/g1/e1',
  'the entities of a partition': 'expenses/g1',
  'an intra-partition index': 'expenses/by/status/g1/final',
  'an inter-partition index': 'expenses/by/paidBy/ann',
  'a unique index': 'expenses/by/expenseId/e1',
  'a list in an index row': 'expenses/by/note/g1/rent',
  'a total': 'expenses/totals/perGroup/g1',
  'an entity out of reach by its key': 'expenses/g2/e3',
};

test('a rule adds no transaction but one for the memberships, and that once', async () => {
  const cost = async (caller: { subject: string; roles: string[] }, path: string, etag = '') => {
    const { status, headers } = await app.ask(caller, 'GET', path, undefined, etag ? { 'if-none-match': etag } : {});
    expect(status, path).toBeLessThan(405);
    const [, count = '0'] = /desc="(\d+) transactions?/.exec(headers.get('server-timing') ?? '') ?? [];
    return [count, headers.get('etag') ?? ''] as const;
  };
  const counted: Record<string, string[]> = {};
  for (const [at, [read, path]] of Object.entries(COUNTED).entries()) {
    const [, changing] = read.includes('changed') ? await cost(user('ann'), path) : ['', ''];
    const member = user(`new${at}`);
    await app.ask(auditor, 'POST', 'members', { groupId: 'g1', userId: `new${at}`, role: 'member' });
    const counts: string[] = [];
    for (const caller of [auditor, member, member]) counts.push((await cost(caller, path, changing))[0]);
    counted[read] = counts;
  }
  const expected = (read: string) => (read.includes('out of reach') ? ['1', '1', '0'] : ['1', '2', '1']);
  expect(counted).toEqual(Object.fromEntries(Object.keys(COUNTED).map((read) => [read, expected(read)])));
});

test('a delete of a range deletes the rows within reach and no others', async () => {
  const all = { subject: 'x', roles: ['all'] };
  const books = await openAccessApp(import.meta.url, notesModel);
  for (const [noteId, owner] of Object.entries({ n1: 'ann', n2: 'bob', n3: 'ann' }))
    expect((await books.ask(all, 'POST', 'notes', { book: 'b', noteId, owner })).status).toBe(201);
  const deleted = await books.ask({ subject: 'ann', roles: ['user'] }, 'DELETE', 'notes/b?all=true');
  expect(deleted.body).toMatchObject({ deleted: 2, failed: 0 });
  expect((await books.ask(all, 'GET', 'notes/b')).body.items).toEqual([{ book: 'b', noteId: 'n2', owner: 'bob' }]);
});

test('children go with a parent only if the rule holds for its key as it is stored', async () => {
  const all = { subject: 'x', roles: ['all'] };
  const library = await openAccessApp(import.meta.url, booksModel);
  const user = (...books: string[]) => ({ subject: 'u', roles: ['user'], claims: { books } });
  await library.ask(all, 'POST', 'books', { book: 'b', title: 'x' });
  await library.ask(all, 'POST', 'chapters', { book: 'b', chapterId: '1' });
  const actions = [{ delete: { book: 'B' } }];
  expect((await library.ask(user('B'), 'POST', 'books/batch', { actions })).status).toBe(403);
  const named = actions.map((action) => ({ books: action }));
  expect((await library.ask(user('B'), 'POST', 'transact', { actions: named })).status).toBe(403);
  expect((await library.ask(all, 'GET', 'chapters/b/1')).status).toBe(200);
  expect((await library.ask(user('b'), 'POST', 'books/batch', { actions })).body.results[0].status).toBe(204);
});
