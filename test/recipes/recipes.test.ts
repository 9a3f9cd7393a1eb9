import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { createTestStore } from '../../lib/testing/index.ts';
import { httpDoor } from '../kit/http.ts';
import { model as approvals } from './approvals.ts';
import { model as bookings } from './bookings.ts';
import { model as counters } from './counters.ts';
import { model as declared } from './declared.ts';
import { model as directReads } from './direct-reads.ts';
import { printTours } from './direct-reads-client.ts';
import { model as imports } from './imports.ts';
import { operations as invitationOperations, model as invitations } from './invitations.ts';
import { model as membership } from './membership.ts';
import { model as prefixSearch } from './prefix-search.ts';
import { model as publishing } from './publishing.ts';
import { model as tenants } from './tenants.ts';

/** What the pages of docs/recipes say of their models. */

const user = (subject: string, claims: Record<string, string> = {}) => ({ subject, roles: ['user'], claims });
const forbidden = { code: 'forbidden' };

test.each([
  ...['approvals', 'bookings', 'counters', 'direct-reads', 'imports', 'invitations', 'membership', 'prefix-search'],
  ...['publishing', 'tenants'],
])('docs/recipes/%s.md shows the model that the tests run', (name) => {
  const code = readFileSync(new URL(`${name}.ts`, import.meta.url), 'utf8').replace('../../lib/index.ts', 'rowkey');
  const page = readFileSync(new URL(`../../docs/recipes/${name}.md`, import.meta.url), 'utf8');
  expect(page).toContain(`\`\`\`ts\n${code}\`\`\`\n`);
});

test('members read the notices of their club, and its admins write them', async () => {
  const { store } = await createTestStore(membership);
  await store.members.create({ clubId: 'chess', userId: 'ann', role: 'admin' });
  await store.members.create({ clubId: 'chess', userId: 'bob', role: 'member' });
  const [ann, bob, eve] = ['ann', 'bob', 'eve'].map((subject) => store.as(user(subject)));
  const notice = { clubId: 'chess', noticeId: '1', text: 'Monday' };
  await ann?.notices.create(notice);
  await expect(bob?.notices.create({ ...notice, noticeId: '2' })).rejects.toMatchObject(forbidden);
  expect(await Array.fromAsync(bob?.notices.mine() ?? [])).toEqual([notice]);
  expect(await eve?.notices.get({ clubId: 'chess', noticeId: '1' })).toBeUndefined();
});

test('everybody reads what is published, the newest first, and authors their drafts', async () => {
  const { store, settle } = await createTestStore(publishing);
  const ann = store.as(user('ann'));
  const visitor = store.as({ subject: '', roles: ['visitor'], claims: {} });
  const post = { title: 'A', status: 'published' } as const;
  await ann.posts.create({ ...post, postId: '1', publishedAt: '2026-11-01T00:00:00.000Z' });
  await ann.posts.create({ ...post, postId: '2', publishedAt: '2026-11-02T00:00:00.000Z' });
  await ann.posts.create({ ...post, postId: '3', publishedAt: '2026-11-03T00:00:00.000Z', status: 'draft' });
  await settle();
  expect(await Array.fromAsync(visitor.posts.by.status.range({ status: 'published' }), ({ postId }) => postId)).toEqual(
    ['2', '1'],
  );
  expect(await Array.fromAsync(ann.posts.range({ authorId: 'ann' }))).toHaveLength(3);
  expect(await visitor.posts.get({ authorId: 'ann', postId: '3' })).toBeUndefined();
  await expect(
    store
      .as(user('bob'))
      .posts.create({ ...post, authorId: 'ann', postId: '4', publishedAt: '2026-11-02T00:00:00.000Z' }),
  ).rejects.toMatchObject(forbidden);
});

test('an applicant submits a draft, and a manager decides', async () => {
  const { store } = await createTestStore(approvals);
  const ann = store.as(user('ann'));
  const boss = store.as({ subject: 'boss', roles: ['manager'], claims: {} });
  const key = { applicant: 'ann', leaveId: '1' };
  await expect(ann.leaves.create({ leaveId: '1', days: 3, state: 'approved' })).rejects.toMatchObject(forbidden);
  await ann.leaves.create({ leaveId: '1', days: 3, state: 'draft' });
  await expect(boss.leaves.update(key, { state: 'approved' })).rejects.toMatchObject(forbidden);
  await ann.leaves.update(key, { state: 'submitted' });
  await expect(ann.leaves.update(key, { state: 'approved' })).rejects.toMatchObject(forbidden);
  await expect(ann.leaves.update(key, { days: 30 })).rejects.toMatchObject(forbidden);
  await boss.leaves.update(key, { state: 'approved' });
  expect((await ann.leaves.get(key))?.values.state).toBe('approved');
});

test('bookings of a room do not overlap, unless one is cancelled', async () => {
  const { store } = await createTestStore(bookings);
  const booking = { roomId: 'r1', state: 'booked' } as const;
  await store.bookings.create({ ...booking, bookingId: '1', days: ['2026-11-20', '2026-11-21'] });
  const overlapping = { ...booking, bookingId: '2', days: ['2026-11-21', '2026-11-22'] };
  await expect(store.bookings.create(overlapping)).rejects.toMatchObject({ code: 'duplicate-value' });
  await store.bookings.create({ ...overlapping, roomId: 'r2' });
  await store.bookings.update({ roomId: 'r1', bookingId: '1' }, { state: 'cancelled' });
  await store.bookings.create(overlapping);
});

test('totals, counts and series count', async () => {
  const { store } = await createTestStore(counters);
  for (const [saleId, amount] of Object.entries({ a: 0.1, b: 0.2 }))
    await store.sales.create({ shop: 'Oslo', saleId, soldOn: '2026-11-20', amount });
  expect(await store.sales.totals.byMonth.get({ shop: 'Oslo', soldOn: '2026-11' })).toMatchObject({
    count: 2,
    sum: { amount: 0.3 },
    max: { amount: 0.2 },
  });
  await store.halls.create({ hall: 'A' });
  await store.seats.create({ hall: 'A', seat: '1' });
  expect((await store.halls.get({ hall: 'A' }))?.values.seatCount).toBe(1);
  const day = { page: 'home', day: '2026-11-20' };
  await Promise.all([1, 2, 3].map(() => store.views.increment(day, 9, 1)));
  expect((await store.views.get(day))?.counts).toMatchObject({ 9: 3 });
});

test('finds contacts by the first letters of their name', async () => {
  const { store } = await createTestStore(prefixSearch);
  for (const [contactId, name] of Object.entries({ 1: 'Anna', 2: 'andre', 3: 'Bob' }))
    await store.contacts.create({ team: 't', contactId, name });
  const found = store.contacts.by.nameKey.range({ team: 't' }, { prefix: 'an', first: 10 });
  expect(await Array.fromAsync(found, ({ name }) => name)).toEqual(['andre', 'Anna']);
});

test('whoever knows the code of an invitation joins until it expires', async () => {
  const { store, advance } = await createTestStore(invitations, { operations: invitationOperations });
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const { values } = await store.invitations.create({ clubId: 'chess', expiresAt });
  const bob = store.as(user('bob'));
  expect(await bob.operations.join({ code: values.code })).toEqual({ clubId: 'chess' });
  expect(await store.members.get({ clubId: 'chess', userId: 'bob' })).toBeDefined();
  advance(3_600_000);
  await expect(bob.operations.join({ code: values.code })).rejects.toMatchObject({ code: 'not-found' });
});

test('the same line of a file is the same payment', async () => {
  const { store } = await createTestStore(imports);
  const line = { account: 'CH1', bookedOn: '2026-11-20', text: 'Rent', amount: -900 };
  const { values } = await store.payments.create(line);
  await expect(store.payments.create(line)).rejects.toMatchObject({ code: 'duplicate-key' });
  expect(values.paymentId).toMatch(/^[0-9a-f]{12}$/);
});

test('drivers get grants for their own row and tours', () => {
  const { drivers, tours } = directReads.entities;
  expect([drivers.access.own, tours.access.own]).toMatchObject([
    { claim: 'sub', index: 'userId' },
    { permissions: 'r' },
  ]);
});

test('the client of the drivers asks for a grant, and without one the API', async () => {
  const source = readFileSync(new URL('direct-reads-client.ts', import.meta.url), 'utf8');
  const [code = ''] = /^ {2}const client = .*?(?=^\})/ms.exec(source) ?? [];
  const page = readFileSync(new URL('../../docs/recipes/direct-reads.md', import.meta.url), 'utf8');
  expect(page).toContain(`\`\`\`ts\n${code.replaceAll(/^ {2}/gm, '')}\`\`\`\n`);
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (url: string | URL, { method = 'GET' }: RequestInit = {}) => {
    asked.push(`${method} ${new URL(url).pathname}`);
    if (String(url).endsWith('/model')) return Response.json(httpDoor.describeModel(directReads));
    if (method === 'POST') return Response.json({ code: 'forbidden', status: 403 }, { status: 403 });
    return Response.json({ items: [{ driverId: '1', day: '2026-11-20', stops: [] }] });
  });
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  await printTours('http://127.0.0.1:7071/api', 'a token', '1');
  expect(log.mock.calls).toEqual([['2026-11-20']]);
  expect(asked).toEqual(['GET /api/model', 'POST /api/grants', 'GET /api/tours/1']);
  vi.unstubAllGlobals();
  log.mockRestore();
});

test('a tenant sees its own orders and no others', async () => {
  const { store } = await createTestStore(tenants);
  const [acme, other] = ['acme', 'other'].map((tenant) => store.as(user(`of ${tenant}`, { tenant })));
  await acme?.orders.create({ orderId: '1', text: 'Ten' });
  expect(await acme?.orders.get({ tenant: 'acme', orderId: '1' })).toBeDefined();
  expect(await other?.orders.get({ tenant: 'acme', orderId: '1' })).toBeUndefined();
  await expect(other?.orders.create({ tenant: 'acme', orderId: '2', text: 'Ten' })).rejects.toMatchObject(forbidden);
});

test('docs/declare-an-entity.md shows a declaration that works, and an index by which a tool has one open loan', async () => {
  const code = readFileSync(new URL('declared.ts', import.meta.url), 'utf8');
  const page = readFileSync(new URL('../../docs/declare-an-entity.md', import.meta.url), 'utf8');
  for (const shown of [/^export const vehicles = .*?^\}\);\n/ms, /open: intraPartitionIndex\(.*\)(?=,)/])
    expect(page).toContain(shown.exec(code)?.[0]);
  const { store } = await createTestStore(declared);
  const vehicle = { site: 'Oslo', vehicleId: '0001', plate: 'ab 1', make: 'Kangoo' };
  await store.vehicles.create(vehicle);
  expect(await store.vehicles.by.plate({ plate: 'AB 1' })).toMatchObject({ vehicleId: '0001' });
  await expect(store.vehicles.create({ ...vehicle, vehicleId: '0002' })).rejects.toMatchObject({ field: 'plate' });
  await store.loans.create({ toolId: 'saw', loanId: '1' });
  const second = { toolId: 'saw', loanId: '2' };
  await expect(store.loans.create(second)).rejects.toMatchObject({ code: 'duplicate-value', field: 'toolId' });
  await store.loans.update({ toolId: 'saw', loanId: '1' }, { returnedOn: '2026-11-20' });
  await store.loans.create(second);
});
