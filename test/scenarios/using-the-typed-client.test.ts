import { beforeAll, describe, expect, test, vi } from 'vitest';
import { type Call, type ClientOptions, createClient, RowkeyClientError } from '../../lib/client/index.ts';
import { PNG } from '../../local/walk/png.ts';
import type { model } from '../fixtures/model.ts';
import { PATIENCE_MS } from '../patience.ts';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** The typed client against the app under the host, and against storage with its grants. */

const product = useProduct(import.meta.url);

type Person = Parameters<ReturnType<typeof createClient<typeof model>>['employees']['create']>[0];

async function clientOf(
  role: string,
  { email, ...options }: { email?: string } & Partial<ClientOptions<typeof model>> = {},
) {
  const calls: Call[] = [];
  const token = await product.token(role, email);
  const client = createClient<typeof model>({
    url: new URL('/api', product.url).href,
    token: () => token,
    onCall: (call) => calls.push(call),
    ...options,
  });
  const last = () => calls.at(-1);
  return { client, calls, last };
}

const person = (over: Partial<Person> = {}) => somebody({ department: 'Typing', ...over }) as Person;
const keyOf = ({ department, employeeId }: Person) => ({ department, employeeId });

describe('entities', () => {
  test('are created, read, changed under their ETag and deleted', { tags: ['slow'] }, async () => {
    const { client, last } = await clientOf('hr');
    const one = person({ nationalId: 'AB-1' });
    const key = keyOf(one);
    const created = await client.employees.create(one);
    expect(created.values).toMatchObject({ ...key, email: one.email });
    expect(last()).toMatchObject({ method: 'POST', path: '/employees', status: 201, way: 'api' });
    expect(last()?.transactions).toBeGreaterThanOrEqual(10);

    expect(await client.employees.get(key)).toEqual({ etag: created.etag, values: { ...one } });
    expect(last()).toMatchObject({ status: 200, transactions: 1 });
    await client.employees.get(key);
    expect(last()).toMatchObject({ status: 304, transactions: 1 });

    const changed = await client.employees.update(key, { phone: '1' });
    const { client: other } = await clientOf('hr');
    await other.employees.update(key, { phone: '2' });
    const error = await client.employees.update(key, { phone: '3' }).catch((thrown) => thrown);
    if (!client.employees.isConflict(error)) throw error;
    expect(error.current?.values).toMatchObject({ phone: '2' });
    expect(error.current?.etag).not.toBe(changed.etag);
    await client.employees.update(key, { phone: '3' }, { ifMatch: error.current?.etag ?? '' });

    const { department: _, employeeId: __, ...fields } = one;
    await client.employees.put(key, { ...fields, jobTitle: 'Clerk' });
    await other.employees.replace(key, { ...fields, jobTitle: 'Buyer' }, { ifMatch: '*' });
    await client.employees.delete(key, { ifMatch: '*' });
    expect(await client.employees.get(key)).toBeUndefined();
    await expect(client.employees.delete(key)).rejects.toMatchObject({ code: 'not-found', status: 404 });
  });

  test('that exist are not created again, and the error has the one that does', { tags: ['slow'] }, async () => {
    const { client } = await clientOf('hr');
    const one = person();
    await client.employees.create(one);
    const taken = await client.employees.create({ ...one, firstName: 'Other' }).catch((thrown) => thrown);
    expect(client.employees.isConflict(taken) && taken.current?.values).toMatchObject({ firstName: one.firstName });
    const value = await client.employees.create({ ...person(), email: one.email }).catch((thrown) => thrown);
    expect(value).toMatchObject({ code: 'duplicate-value', problem: { field: 'email' } });
    const invalid = await client.employees.create({ ...one, employeeId: 'x' }).catch((thrown) => thrown);
    expect(invalid).toBeInstanceOf(RowkeyClientError);
    expect(invalid).toMatchObject({ code: 'invalid-input', problem: { field: 'employeeId' } });
  });

  test('are listed and found by their keys and indexes', { tags: ['slow'] }, async () => {
    const { client, last } = await clientOf('hr');
    const people = [30, 40, 50].map((age) => person({ department: 'Listing', age, lastName: 'Lister' }));
    const wrong = { ...person(), employeeId: 'x' };
    const results = await client.employees.batch([...people, wrong].map((create) => ({ create })));
    expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created', 'failed']);
    expect(results[3]?.error).toMatchObject({ code: 'invalid-input' });
    const department = 'Listing';
    const ages = async (list: AsyncIterable<{ age?: number | undefined }>) =>
      (await Array.fromAsync(list)).map(({ age }) => age).sort();
    expect(await ages(client.employees.range({ department }, { select: ['age'] }))).toEqual([30, 40, 50]);
    expect(await ages(client.employees.range({ department }, { where: { age: { gt: 30, in: [40, 60] } } }))).toEqual([
      40,
    ]);
    expect(await ages(client.employees.by.lastName({ department, lastName: 'Lister' }))).toEqual([30, 40, 50]);
    expect(await ages(client.employees.by.lastName.range({ department }, { prefix: 'Li', first: 2 }))).toHaveLength(2);
    const { items, next } = await client.employees.range({ department }).page({ top: 2 });
    const rest = await client.employees.range({ department }).page({ top: 2, after: next });
    expect([...items, ...rest.items].map(({ age }) => age).sort()).toEqual([30, 40, 50]);
    expect(rest.next).toBeUndefined();
    const [first] = people;
    expect(await client.employees.by.emailCompanyWide({ email: first?.email ?? '' })).toMatchObject({ age: 30 });
    expect(last()).toMatchObject({ status: 200 });
    expect(await client.employees.by.emailCompanyWide({ email: 'nobody@contoso.com' })).toBeUndefined();
  });

  test('come with their children', { tags: ['slow'] }, async () => {
    const { client } = await clientOf('hr');
    const one = person();
    await client.employees.create(one);
    for (const [year, rating] of [
      [2020, 3],
      [2021, 5],
    ] as const)
      await client.reviews.create({ ...keyOf(one), year, rating });
    const found = await client.employees.get(keyOf(one), {
      include: ['reviews'],
      where: { reviews: { rating: { ge: 4 } } },
    });
    expect(found?.values.reviews).toMatchObject([{ year: 2021 }]);
  });

  test('are explained, and nothing is done', async () => {
    const { client } = await clientOf('hr');
    const one = person();
    const { transactions, steps } = await client.explain.employees.create(one);
    expect(steps.length).toBeGreaterThan(5);
    expect(transactions).toBeGreaterThan(5);
    expect(await client.employees.get(keyOf(one))).toBeUndefined();
  });

  test('are archived and moved by operations that one can wait for', { tags: ['slow'] }, async () => {
    const { client } = await clientOf('hr');
    const [one, two] = [person(), person()];
    for (const each of [one, two]) await client.employees.create(each);
    const move = await client.employees.move(keyOf(one), { department: 'Moved' });
    expect(await move.done()).toMatchObject({ status: 'succeeded', operationId: move.operationId });
    expect(await client.employees.get({ ...keyOf(one), department: 'Moved' })).toBeDefined();
    const archive = await client.employees.archive(keyOf(two));
    await archive.done();
    expect(await client.employees.get(keyOf(two))).toBeUndefined();
    const archived = client.employees.archived;
    expect((await archived.get(keyOf(two)))?.values).toMatchObject({ email: two.email });
    const ids = await Array.fromAsync(archived.range({ department: two.department }, { select: ['employeeId'] }));
    expect(ids).toContainEqual({ employeeId: two.employeeId });
    await archived.delete(keyOf(two));
    expect(await archived.get(keyOf(two))).toBeUndefined();
    const nothing = await client.employees.archive(keyOf(two)).catch((thrown) => thrown);
    expect(nothing).toMatchObject({ code: 'not-found' });
  });

  test('of several kinds are narrowed by their kind', async () => {
    const { client } = await clientOf('hr');
    const created = await client.people.create({
      kind: 'customer',
      country: 'NO',
      personId: 'c1',
      firstName: 'A',
      companyName: 'B',
    });
    expect(created.values.kind === 'customer' && created.values.companyName).toBe('B');
  });
});

describe('many entities', () => {
  test('come in one request, each with its cost', async () => {
    const { client, calls } = await clientOf('hr');
    const one = person({ department: 'Querying' });
    await client.employees.create(one);
    const { department } = one;
    const before = calls.length;
    const { me, team, byMail, nobody, hidden } = await client.query(({ employees, departments }) => ({
      me: employees.get(keyOf(one)),
      team: employees.range({ department }, { where: { lastName: one.lastName }, select: ['email'], top: 1 }),
      byMail: employees.by.emailCompanyWide({ email: one.email }),
      nobody: departments.get({ department: 'Nowhere' }),
      hidden: employees.range({ department }, { top: 0 }),
    }));
    expect(calls.slice(before)).toMatchObject([{ method: 'POST', path: '/query', status: 200 }]);
    expect(me).toMatchObject({ value: { values: { email: one.email } }, transactions: 1 });
    expect(team).toEqual({ value: { items: [{ email: one.email }], next: undefined }, transactions: 1 });
    expect(byMail.value?.employeeId).toBe(one.employeeId);
    expect([nobody.value, nobody.error]).toEqual([undefined, undefined]);
    expect(hidden.error).toMatchObject({ code: 'invalid-input', problem: { field: 'top' } });
    await client.employees.update(keyOf(one), { phone: '1' });
    const refused = client.employees.update(keyOf(one), { phone: '2' }, { ifMatch: me.value?.etag ?? '' });
    await expect(refused).rejects.toMatchObject({ code: 'etag-mismatch' });
  });

  test('continue where a page of a query ended', async () => {
    const { client } = await clientOf('hr');
    const department = 'Paging';
    await client.employees.batch([1, 2, 3].map(() => ({ create: person({ department }) })));
    const ids: string[] = [];
    let continuation: string | undefined;
    do {
      const { page } = await client.query(({ employees }) => ({
        page: employees.range({ department }, { select: ['employeeId'], top: 2, continuation }),
      }));
      ids.push(...(page.value?.items ?? []).map(({ employeeId }) => employeeId));
      continuation = page.value?.next;
    } while (continuation);
    expect(new Set(ids).size).toBe(3);
  });

  test('have totals, of a group and of a range of groups', async () => {
    const { client, last } = await clientOf('hr');
    const branch = 'Typed';
    const sold = [
      ['2026-10-01', 10],
      ['2026-11-02', 5],
      ['2026-11-20', 7],
    ] as const;
    for (const [at, [soldOn, amount]] of sold.entries())
      await client.sales.create({ branch, saleId: `S00000${at}`, soldOn, amount });
    expect(await client.sales.totals.byMonth.get({ branch, soldOn: '2026-11' })).toMatchObject({
      ...{ group: { branch, soldOn: '2026-11' }, count: 2, sum: { amount: 12 } },
      ...{ min: { amount: 5, soldOn: '2026-11-02' }, max: { amount: 7 } },
    });
    expect(last()).toMatchObject({ path: '/sales/totals/byMonth/Typed/2026-11', transactions: 1 });
    const months = await Array.fromAsync(client.sales.totals.byMonth.range({ branch }, { from: '2026' }));
    expect(months.map(({ count }) => count)).toEqual([1, 2]);
    const { transactions } = await client.explain.sales.totals.byMonth.get({ branch, soldOn: '2026-11' });
    expect(transactions).toBe(1);
  });

  test('of a lookup table come as a whole, from the memory of the app', async () => {
    const { client, last } = await clientOf('hr');
    for (const currency of ['NOK', 'EUR']) await client.currencies.create({ currency, title: 'Money' });
    await Array.fromAsync(client.currencies.list());
    const listed = await Array.fromAsync(client.currencies.list({ where: { currency: 'EUR' }, select: ['currency'] }));
    expect(listed).toEqual([{ currency: 'EUR' }]);
    expect(last()).toMatchObject({ path: '/currencies?select=currency&currency=eq%3AEUR', transactions: 0 });
    const { all } = await client.query(({ currencies }) => ({ all: currencies.list({ select: ['currency'] }) }));
    expect(all.value?.items.map(({ currency }) => currency)).toEqual(['EUR', 'NOK']);
  });

  test('are deleted by a range of their partition', { tags: ['slow'] }, async () => {
    const { client } = await clientOf('hr');
    const department = 'Closing';
    const people = ['000101', '000102', '000205'].map((employeeId) => person({ department, employeeId }));
    for (const one of people) await client.employees.create(one);
    const progress: number[] = [];
    const onProgress = (deleted: number) => progress.push(deleted);
    const deleted = await client.employees.deleteRange({ department }, { to: '0001', onProgress });
    expect([deleted, progress]).toEqual([{ deleted: 2, failed: 0, errors: [] }, [2]]);
    const left = await Array.fromAsync(client.employees.range({ department }));
    expect(left.map(({ employeeId }) => employeeId)).toEqual(['000205']);
    expect(await client.employees.create(people[0] as Person)).toBeDefined();
  });
});

test('groups of fields are read when they are included or selected', async () => {
  const { client } = await clientOf('hr');
  await client.categories.create({ categoryId: 41 });
  const key = { categoryId: 41, productId: 7 };
  const text = { description: 'Black tea', specification: '20 bags' };
  await client.products.create({ ...key, productName: 'Chai', ...text });
  expect((await client.products.get(key))?.values).not.toHaveProperty('description');
  expect((await client.products.get(key, { include: ['text'] }))?.values).toMatchObject(text);
  const selected = await client.products.get(key, { select: ['description'] });
  expect(selected?.values).toEqual({ description: text.description });
  const { part, whole } = await client.query(({ products }) => ({
    part: products.get(key, { select: ['description'] }),
    whole: products.get(key, { include: ['text'] }),
  }));
  expect(part.value?.values).toEqual({ description: text.description });
  expect(whole.value?.values).toMatchObject(text);
  const { client: other } = await clientOf('hr');
  await other.products.update(key, { specification: '50 bags' });
  const error = await client.products.update(key, { description: 'x' }).catch((thrown) => thrown);
  expect(client.products.isConflict(error) && error.current?.values).toMatchObject({ specification: '50 bags' });
});

test('counts of a data series', async () => {
  const { client } = await clientOf('hr');
  const key = { employeeId: '000777', day: '2026-11-20' };
  expect(await client.messagehours.get(key)).toBeUndefined();
  await client.messagehours.set(key, { 9: 7 });
  expect(await client.messagehours.increment(key, 9, 2)).toBe(9);
  const found = await client.messagehours.get(key);
  expect([found?.values, found?.counts.slice(8, 11)]).toEqual([key, [0, 9, 0]]);
  await client.messagehours.set(key, { 10: 1 }, { ifMatch: found?.etag ?? '' });
  await expect(client.messagehours.set(key, { 10: 2 }, { ifMatch: found?.etag ?? '' })).rejects.toMatchObject({
    code: 'etag-mismatch',
  });
  await client.messagehours.delete(key);
  expect(await client.messagehours.get(key)).toBeUndefined();
});

test('files go directly to storage, or through the API with a precondition', { tags: ['slow'] }, async () => {
  const { client, calls } = await clientOf('hr');
  const one = person();
  await client.employees.create(one);
  const photo = client.employees.files.photo;
  expect(await photo.get(keyOf(one))).toBeUndefined();
  const progress: number[] = [];
  const file = new Blob([PNG], { type: 'image/png' });
  const stored = await photo.put(keyOf(one), file, { onProgress: (sent) => progress.push(sent) });
  expect(stored).toMatchObject({ type: 'image/png', bytes: PNG.length });
  expect(progress).toEqual([PNG.length]);
  expect(calls.slice(-3).map(({ method, way }) => `${method} ${way}`)).toEqual(['POST api', 'PUT storage', 'POST api']);
  const found = await photo.get(keyOf(one));
  expect(new Uint8Array((await found?.blob.arrayBuffer()) ?? new ArrayBuffer())).toEqual(new Uint8Array(PNG));
  const taken = photo.put(keyOf(one), file, { ifNoneMatch: '*' });
  await expect(taken).rejects.toMatchObject({ code: 'etag-mismatch' });
  await photo.delete(keyOf(one), { ifMatch: found?.etag ?? '' });
  expect(await photo.get(keyOf(one))).toBeUndefined();
});

describe('a file in blocks', () => {
  const BLOCK = 100_000;
  const file = new Blob([PNG, new Uint8Array(4 * BLOCK + 5)], { type: 'image/png' });

  /** A client whose requests to storage `intercept` may answer. */
  async function open(intercept: (url: string, count: number) => Response | Error | undefined) {
    let count = 0;
    const sent: string[] = [];
    const flight = { now: 0, most: 0 };
    const fetchThrough: typeof fetch = async (input, init) => {
      const url = String(input);
      const query = /[?&]comp=(\w+)(?:&blockid=0*(\d+))?/.exec(url);
      if (!query) return fetch(input, init);
      count += 1;
      const instead = intercept(url, count);
      if (instead instanceof Error) throw instead;
      if (instead) return instead;
      sent.push(`${query[1]}${query[2] ?? ''}`);
      flight.now += 1;
      flight.most = Math.max(flight.most, flight.now);
      return fetch(input, init).finally(() => {
        flight.now -= 1;
      });
    };
    const { client, calls } = await clientOf('hr', { fetch: fetchThrough });
    const one = person();
    await client.employees.create(one);
    const { photo } = client.employees.files;
    return { photo, key: keyOf(one), sent, calls, client, flight };
  }

  const everyBlock = ['block0', 'block1', 'block2', 'block3', 'block4', 'blocklist'];

  test('goes directly to storage, with its progress, and is checked like any other', async () => {
    const { photo, key, sent, calls, flight } = await open(() => undefined);
    const progress: number[] = [];
    const stored = await photo.put(key, file, { blockBytes: BLOCK, onProgress: (bytes) => progress.push(bytes) });
    expect(stored).toMatchObject({ type: 'image/png', bytes: file.size, sha256: expect.any(String) });
    expect(sent.toSorted()).toEqual(everyBlock);
    expect(flight.most).toBe(4);
    expect([progress.length, progress.at(-1)]).toEqual([5, file.size]);
    expect(calls.filter(({ method, way }) => method === 'PUT' && way === 'api')).toEqual([]);
    expect((await photo.get(key))?.blob.size).toBe(file.size);
    const text = new Blob(['x'.repeat(3 * BLOCK)], { type: 'image/png' });
    await expect(photo.put(key, text, { blockBytes: BLOCK })).rejects.toMatchObject({ code: 'unsupported-media-type' });
    expect((await photo.get(key))?.etag).toBe(`"${stored?.sha256}"`);
  });

  test('is sent again block by block after failures, and under another grant when the first one has expired', {
    tags: ['slow'],
  }, async () => {
    const failures = [
      new Response('', { status: 503 }),
      new TypeError('no response'),
      new Response('', { status: 403 }),
    ];
    const { photo, key, sent, calls } = await open((_, count) => (count > 4 ? failures.pop() : undefined));
    expect(await photo.put(key, file, { blockBytes: BLOCK })).toMatchObject({ bytes: file.size });
    expect(sent.toSorted()).toEqual(everyBlock);
    const grants = calls.filter(({ path }) => path.endsWith('/uploads'));
    expect(grants.map(({ status }) => status)).toEqual([201, 201]);
  });

  test('continues with the blocks that are left when the same file is sent again', async () => {
    const failure = new AbortController();
    const { photo, key, sent } = await open((_, count) => {
      if (count === 5) failure.abort(new Error('The user left.'));
      return undefined;
    });
    await expect(photo.put(key, file, { blockBytes: BLOCK, signal: failure.signal })).rejects.toThrow('The user left.');
    expect(await photo.get(key)).toBeUndefined();
    const before = sent.length;
    expect(await photo.put(key, file, { blockBytes: BLOCK })).toMatchObject({ bytes: file.size });
    expect(sent.length - before).toBeLessThan(everyBlock.length);
    expect((await photo.get(key))?.blob.size).toBe(file.size);
  });

  test('starts again if storage has lost its blocks meanwhile', async () => {
    const failure = new AbortController();
    let name = '';
    const { photo, key, sent } = await open((url, count) => {
      name = decodeURIComponent(/\/uploads\/([^?]+)/.exec(url)?.[1] ?? '');
      if (count === 6) failure.abort(new Error('The user left.'));
      return undefined;
    });
    await expect(photo.put(key, file, { blockBytes: BLOCK, signal: failure.signal })).rejects.toThrow('The user left.');
    // A list of other blocks discards them.
    const blob = product.storage.container('uploads').getBlockBlobClient(name);
    await blob.commitBlockList([]);
    await blob.delete();
    expect(await photo.put(key, file, { blockBytes: BLOCK })).toMatchObject({ bytes: file.size });
    expect(sent.filter((each) => each === 'block0')).toHaveLength(2);
  });

  test('is read in ranges, each again if it fails, and as a whole if it is replaced meanwhile', {
    tags: ['slow'],
  }, async () => {
    const { photo, key } = await open(() => undefined);
    await photo.put(key, file);
    const ranges: (string | null)[] = [];
    let onRange = async (_count: number) => {};
    const fetchRanges: typeof fetch = async (input, init) => {
      const range = new Headers(init?.headers).get('range');
      if (range === null) return fetch(input, init);
      ranges.push(range);
      await onRange(ranges.length);
      return fetch(input, init);
    };
    const { client } = await clientOf('hr', { fetch: fetchRanges });
    const reader = client.employees.files.photo;
    onRange = async (count) => {
      if (count === 2) throw new TypeError('no response');
    };
    const progress: number[] = [];
    const found = await reader.get(key, { rangeBytes: 150_000, onProgress: (bytes) => progress.push(bytes) });
    const bytes = await found?.blob.arrayBuffer();
    expect(bytes && Buffer.from(bytes).equals(Buffer.from(await file.arrayBuffer()))).toBe(true);
    expect(found?.blob.type).toBe('image/png');
    expect(progress).toEqual([150_000, 300_000, file.size]);
    expect(ranges).toHaveLength(4);
    ranges.length = 0;
    const other = new Blob([PNG, new Uint8Array(7)], { type: 'image/png' });
    onRange = async (count) => {
      if (count === 2) await photo.put(key, other);
    };
    expect((await reader.get(key, { rangeBytes: 150_000 }))?.blob.size).toBe(other.size);
    await photo.delete(key);
    expect(await reader.get(key, { rangeBytes: 150_000 })).toBeUndefined();
  });

  test('goes through the API if storage is out of reach', async () => {
    const { photo, key, sent, calls } = await open(() => new TypeError('blocked'));
    expect(await photo.put(key, file, { blockBytes: BLOCK })).toMatchObject({ bytes: file.size });
    expect(sent).toEqual([]);
    expect(calls.filter(({ method, way, status }) => `${method} ${way} ${status}` === 'PUT api 200')).toHaveLength(1);
  });
});

describe('own rows', () => {
  const me = person({ employeeId: '000901', nationalId: 'AB-12', birthDate: '1980-04-03', vacationHours: 12.5 });
  beforeAll(async () => {
    const { client } = await clientOf('hr');
    await client.employees.create(me);
    for (const amount of [1, 2.5])
      await client.expenses.create({ employeeId: me.employeeId, amount, category: 'Meals' });
  });
  const mine = (over: object = {}) =>
    clientOf('reader', { email: me.email, direct: ['employees', 'expenses'], ...over });

  test('are read past the API, in the same shape, with an ETag that a write accepts', async () => {
    const { client, calls, last } = await mine();
    const { client: plain } = await clientOf('reader', { email: me.email });
    const { key, fields } = await client.employees.grant();
    expect(key).toEqual(keyOf(me));
    expect(fields).toContain('birthDate');
    expect(fields).not.toContain('nationalId');
    const direct = await client.employees.get(keyOf(me));
    expect(last()).toMatchObject({ way: 'storage', status: 200, transactions: 1 });
    expect(direct?.values).toEqual((await plain.employees.get(keyOf(me)))?.values);
    expect(direct?.values).toHaveProperty('birthDate', me.birthDate);
    expect(direct?.values).not.toHaveProperty('nationalId');
    await client.employees.get(keyOf(me));
    expect(calls.filter(({ path }) => path === '/grants')).toHaveLength(1);
    const { client: hr } = await clientOf('hr');
    await hr.employees.update(keyOf(me), { phone: '5' }, { ifMatch: direct?.etag ?? '' });
    expect((await client.employees.get(keyOf(me)))?.values).toMatchObject({ phone: '5' });
  });

  test('of a granted partition are listed past the API, without rows that the API leaves out', async () => {
    const { client, last, calls } = await mine();
    const { client: hr } = await clientOf('hr');
    const list = () => Array.fromAsync(client.expenses.range({ employeeId: me.employeeId }));
    const valid = await Array.fromAsync(hr.expenses.range({ employeeId: me.employeeId }));
    expect(await list()).toEqual(valid);
    expect(valid).toHaveLength(2);
    expect(last()).toMatchObject({ way: 'storage', status: 200 });
    const { url, token, partition } = await client.expenses.grant({ permissions: 'a' });
    const row = { PartitionKey: partition, RowKey: 'forged', EntityType: 'expenses', amount: -1, category: 'Meals' };
    const headers = { accept: 'application/json;odata=nometadata', 'content-type': 'application/json' };
    const added = await fetch(`${url}?${token}`, { method: 'POST', headers, body: JSON.stringify(row) });
    expect(added.status).toBe(201);
    expect(await list()).toEqual(valid);
    const pages = client.expenses.range({ employeeId: me.employeeId }, { select: ['amount'] });
    const first = await pages.page({ top: 1 });
    const second = await pages.page({ top: 1, after: first.next });
    expect([...first.items, ...second.items].map(({ amount }) => amount)).toEqual(valid.map(({ amount }) => amount));
    expect(calls.filter(({ way, path }) => way === 'api' && !/^\/(model|grants)/.test(path))).toEqual([]);
  });

  test('of others, and those with an encrypted field that the caller sees, come from the API', async () => {
    const { client: hr, last } = await clientOf('hr', { email: me.email, direct: ['employees'] });
    expect((await hr.employees.get(keyOf(me)))?.values).toMatchObject({ nationalId: 'AB-12' });
    expect(last()).toMatchObject({ way: 'api' });
    const { client, last: lastOfReader } = await mine();
    const other = person();
    await hr.employees.create(other);
    expect((await client.employees.get(keyOf(other)))?.values).toMatchObject({ email: other.email });
    expect(lastOfReader()).toMatchObject({ way: 'api' });
  });

  test('come from the API if no grant is issued or storage fails', async () => {
    const { client, calls, last } = await clientOf('reader', { direct: ['employees'] });
    for (const _ of [1, 2]) expect((await client.employees.get(keyOf(me)))?.values).toMatchObject({ email: me.email });
    expect(calls.filter(({ path }) => path === '/grants').map(({ status }) => status)).toEqual([403]);
    expect(last()).toMatchObject({ way: 'api', status: 304 });
    const broken = (async (url: string, init: RequestInit) =>
      url.startsWith(product.url) ? fetch(url, init) : Promise.reject(new TypeError('CORS'))) as typeof fetch;
    const { client: blocked, calls: tried } = await mine({ fetch: broken });
    for (const _ of [1, 2]) expect(await blocked.employees.get(keyOf(me))).toBeDefined();
    expect(tried.filter(({ way }) => way === 'storage').map(({ status }) => status)).toEqual([0]);
  });

  test('use one grant concurrently, and renew it before it expires', async () => {
    const { client, calls } = await mine();
    const grants = () => calls.filter(({ path }) => path === '/grants');
    await Promise.all([1, 2, 3].map(() => client.employees.get(keyOf(me))));
    expect(grants()).toHaveLength(1);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 13.5 * 60_000 });
    try {
      await Promise.all([1, 2, 3].map(() => client.employees.get(keyOf(me))));
    } finally {
      vi.useRealTimers();
    }
    await vi.waitFor(() => expect(grants()).toHaveLength(2), { timeout: PATIENCE_MS });
    expect(calls.filter(({ way, status }) => way === 'storage' && status === 200)).toHaveLength(6);
  });
});
