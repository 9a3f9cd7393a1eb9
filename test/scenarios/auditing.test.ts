import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type ChangeRecord, engineCore } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { storageBlobs, storageSlots } from '../kit/storage.ts';
import { eventually, type Reply, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const ann = product.as('hr', 'ann@contoso.com');
const bob = product.as('hr', 'bob@contoso.com');
const operator = product.as(['operator', 'hr'], 'olga@contoso.com');
const AUDIT = '/api/operations/audit';
const container = storageBlobs.AUDIT_CONTAINER;
/** More consecutive digits than a random id or an ETag contains. */
const COUNT = 1_234_567_890;

function now(): string {
  return new Date().toISOString();
}

function nextOf({ headers }: Reply): string | undefined {
  return /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
}

async function changesSince(from: string): Promise<ChangeRecord[]> {
  const to = new Date(Date.now() + 1).toISOString();
  const reply = await operator('GET', `${AUDIT}?from=${from}&to=${to}&top=1000`);
  expect(reply.status).toBe(200);
  return reply.body.items;
}

async function everyLine(): Promise<string[]> {
  const names = await storageBlobs.listBlobs(product.storage, { container, prefix: '' });
  const blobs = names.map((name) => Array.fromAsync(storageBlobs.readLines(product.storage, { container, name })));
  return (await Promise.all(blobs)).flat();
}

test('records every change before the response: who, what, when, and no values', { tags: ['slow'] }, async () => {
  const from = now();
  const one = somebody({ department: 'Audited', phone: 'a secret number' });
  const path = `/api/employees/Audited/${one.employeeId}`;
  expect((await ann('POST', '/api/employees', { body: one })).status).toBe(201);
  const patched = await bob('PATCH', path, { body: { phone: 'another number', jobTitle: 'Clerk' } });
  expect(patched.headers.get('server-timing')).toMatch(/^storage;dur=[\d.]+;desc="\d+ transactions", audit;dur=[\d.]+/);
  // A write without changes and a rejected write are not recorded.
  const same = await bob('PATCH', path, { body: { jobTitle: 'Clerk' } });
  expect(same.headers.get('server-timing')).not.toContain('audit');
  expect((await bob('PATCH', path, { body: { phone: '' }, headers: { 'if-match': '"old"' } })).status).toBe(412);
  const others = [somebody({ department: 'Audited' }), somebody({ department: 'Elsewhere' })];
  await ann('POST', '/api/employees/batch', {
    body: { actions: [...others, { ...others[0], age: -1 }].map((put) => ({ put })) },
  });
  await ann('PUT', '/api/messagehours/000001/2026-11-20/3', { body: { count: COUNT } });
  await ann('PATCH', '/api/messagehours/000001/2026-11-20', { body: { counts: { 4: COUNT, 5: 1 } } });
  await bob('POST', '/api/messagehours/000001/2026-11-20/3/increments', { body: { by: 1 } });
  expect((await bob('DELETE', path)).status).toBe(204);
  const [leaving, moving] = others.map(({ department, employeeId }) => `/api/employees/${department}/${employeeId}`);
  expect((await ann('POST', `${leaving}/archive`)).status).toBe(202);
  expect((await ann('POST', `${moving}/move`, { body: { department: 'There' } })).status).toBe(202);
  const until = now();

  const changes = await changesSince(from);
  const row = `empid_${one.employeeId}`;
  const employee = { entity: 'employees', table: 'employees', partition: 'Audited', row };
  const filled = ['department', 'employeeId', 'email', 'firstName', 'lastName', 'phone'];
  const fields = (names: string[]) => expect.toSatisfy((found: string[]) => sorted(found) === sorted(names));
  const series = { operation: 'count', entity: 'messagehours', partition: '000001' };
  const [a, b] = ['ann@contoso.com', 'bob@contoso.com'];
  const batch = changes.filter(({ operation, row: other }) => operation === 'create' && other !== row);
  expect(batch.map(({ by, partition }) => [by, partition]).toSorted()).toEqual([
    [a, 'Audited'],
    [a, 'Elsewhere'],
  ]);
  expect(changes.filter((change) => !batch.includes(change))).toMatchObject([
    { ...employee, by: a, operation: 'create', fields: fields(filled) },
    {
      ...employee,
      by: b,
      operation: 'replace',
      fields: fields(['phone', 'jobTitle']),
      etag: patched.headers.get('etag'),
    },
    { ...series, by: a, fields: ['3'] },
    { ...series, by: a, fields: ['4', '5'] },
    { ...series, by: b, fields: ['3'] },
    { ...employee, by: b, operation: 'delete', fields: fields([...filled, 'jobTitle']) },
    { by: a, operation: 'archive', entity: 'employees', partition: 'Audited', row: `empid_${others[0]?.employeeId}` },
    { by: a, operation: 'move', entity: 'employees', partition: 'Elsewhere', fields: ['department'] },
  ]);
  for (const { at } of changes) expect(at >= from && at <= until).toBe(true);
  expect(new Set(changes.map(({ id }) => id)).size).toBe(changes.length);
  for (const value of ['secret number', 'another number', 'Clerk', String(COUNT), one.email, one.lastName])
    expect(JSON.stringify(await everyLine())).not.toContain(value);
  // The work of queue functions is not recorded again: the request that caused it was.
  await eventually(
    () => ann('GET', leaving ?? ''),
    ({ status }) => status === 404,
  );
  expect(await changesSince(from)).toEqual(changes);
});

test('records what an operator does with poison messages', { tags: ['slow'] }, async () => {
  const from = now();
  const text = 'no JSON either';
  await product.storage.queue('index-changes').sendMessage(text);
  const listed = () => operator('GET', '/api/operations/poison');
  const poison = (reply: Reply) => reply.body.items.filter((item: { text: string }) => item.text === text);
  const [first] = poison(await eventually(listed, (reply) => poison(reply).length === 1));
  await operator('POST', `/api/operations/poison/${first.id}/replay`);
  const isAgain = (reply: Reply) => poison(reply).length === 1 && poison(reply)[0].id !== first.id;
  const [second] = poison(await eventually(listed, isAgain));
  await operator('DELETE', `/api/operations/poison/${second.id}`);
  expect((await operator('DELETE', `/api/operations/poison/${second.id}`)).status).toBe(404);
  const by = 'olga@contoso.com';
  expect(await changesSince(from)).toMatchObject([
    { by, operation: 'replay', entity: 'poison', row: first.id, fields: [] },
    { by, operation: 'drop', entity: 'poison', row: second.id, fields: [] },
  ]);
});

describe('a range of time', () => {
  const rows: string[] = [];

  /** Two processes, each with a change every ten minutes from 08:00 to 11:50. */
  async function prepare(): Promise<void> {
    if (rows.length > 0) return;
    for (const by of ['first', 'second']) {
      const log = operationsCheck.createAuditLog(engineCore.createEngine(product.storage));
      for (let minutes = 8 * 60; minutes < 12 * 60; minutes += 10) {
        const at = new Date(Date.UTC(2026, 2, 1, 0, minutes)).toISOString();
        const address = { entity: 'e', table: 't', partition: 'p', row: `${at} ${by}` };
        rows.push(address.row);
        await log.append([{ id: randomUUID(), at, by, operation: 'create', ...address, fields: [] }]);
      }
    }
  }

  const query = 'from=2026-03-01T09:10:00Z&to=2026-03-01T11:00:00Z';
  const wanted = () => {
    const hour = (row: string) => row.slice(0, 13);
    const process = (row: string) => row.split(' ')[1] ?? '';
    const within = rows.filter((row) => row >= '2026-03-01T09:10' && row < '2026-03-01T11:00');
    return within.toSorted((one, other) =>
      `${hour(one)} ${process(one)} ${one}`.localeCompare(`${hour(other)} ${process(other)} ${other}`),
    );
  };

  test('returns its changes, and reads no other hour', { tags: ['slow'] }, async () => {
    await prepare();
    const reply = await operator('GET', `${AUDIT}?${query}`);
    expect(reply.body.items.map(({ row }: ChangeRecord) => row)).toEqual(wanted());
    expect(reply.headers.get('server-timing')).toContain('"6 transactions"');
    const explained = await operator('GET', `${AUDIT}?${query}&explain=true`);
    const slot = storageSlots.slotOf('2026/03/01');
    expect(explained.body.steps).toEqual([
      // Blobs of earlier releases have no slot.
      ...[`${slot}/2026/03/01/`, '2026/03/01/'].map((prefix) => ({ read: 'blobs', container, prefix })),
      ...['0900/000001', '0900/000002', '1000/000001', '1000/000002'].map((name) => ({
        read: 'blob',
        container,
        name: `${slot}/2026/03/01/${name}.log`,
      })),
    ]);
  });

  test('is returned page by page', { tags: ['slow'] }, async () => {
    await prepare();
    const found: string[] = [];
    for (let next: string | undefined = `${AUDIT}?${query}&top=4`; next; ) {
      const page = await operator('GET', next);
      expect(page.body.items.length).toBeLessThanOrEqual(4);
      found.push(...page.body.items.map(({ row }: ChangeRecord) => row));
      next = nextOf(page);
    }
    expect(found).toEqual(wanted());
    const page = await operator('GET', `${AUDIT}?${query}&top=4`);
    const other = (nextOf(page) ?? '').replace(/to=[^&]+/, 'to=2026-03-01T12:00:00Z');
    expect(await operator('GET', other)).toMatchObject({ status: 400, body: { field: 'continuation' } });
  });

  test.each([
    ['', 'from', /"from" is required/],
    ['from=2026-03-01T09:00:00Z', 'to', /"to" is required/],
    ['from=yesterday&to=2026-03-01T09:00:00Z', 'from', /"from" is not an instant/],
    ['from=2026-03-01&to=2026-03-02', 'from', /"from" is not an instant/],
    ['from=9999-12-31T23:00:00-05:00&to=9999-12-31T23:30:00-05:00', 'from', /"from" is not an instant/],
    ['from=9999-12-31T23:00:00Z&to=9999-12-31T23:30:00-05:00', 'to', /"to" is not an instant/],
    ['from=0000-01-01T00:00:00%2B05:00&to=0000-01-02T00:00:00Z', 'from', /"from" is not an instant/],
    ['from=2026-03-01T09:00:00Z&to=2026-03-01T09:00:00Z', 'to', /must be after from/],
    ['from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:01Z', 'to', /too long after from/],
    [`${query}&top=0`, 'top', /top/],
    [`${query}&by=ann`, 'by', /is unknown/],
  ])('is rejected as %s', async (wrong, field, detail) => {
    const reply = await operator('GET', `${AUDIT}?${wrong}`);
    expect(reply).toMatchObject({ status: 400, body: { field, detail: expect.stringMatching(detail) } });
  });

  test('is empty when nothing changed, and readable by operators only', async () => {
    const empty = 'from=2020-03-01T00:00:00Z&to=2020-04-01T00:00:00Z';
    expect(await operator('GET', `${AUDIT}?${empty}`)).toMatchObject({ status: 200, body: { items: [] } });
    for (const role of ['reader', 'hr'] as const)
      expect((await product.as(role)('GET', `${AUDIT}?${empty}`)).status).toBe(403);
    expect((await product.as(undefined)('GET', `${AUDIT}?${empty}`)).status).toBe(401);
  });
});

test('an explanation lists the append, does not count it as a transaction, and appends nothing', async () => {
  const before = await everyLine();
  const { body } = await ann('POST', '/api/logins?explain=true', { body: { employeeId: '000001', succeeded: true } });
  expect(body.transactions).toBe(1);
  expect(body.steps).toMatchObject([{ write: 'rows' }, { write: 'blob', container, does: 'append' }]);
  expect(await everyLine()).toEqual(before);
});

test('does not acknowledge a change that cannot be recorded, rejects further changes, and records it later', async () => {
  const [one, other] = [somebody({ department: 'Unrecorded' }), somebody({ department: 'Unrecorded' })];
  await ann('POST', '/api/employees', { body: somebody() });
  const from = now();
  const client = product.storage.blobs.getContainerClient(container);
  await client.delete();
  const unavailable = { status: 503, body: { type: '/api/problems#storage-unavailable' } };
  const refused = await ann('POST', '/api/employees', { body: one });
  expect(refused).toMatchObject(unavailable);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(await ann('POST', '/api/employees', { body: other })).toMatchObject(unavailable);
  expect((await ann('GET', `/api/employees/Unrecorded/${other.employeeId}`)).status).toBe(404);
  await client.create();
  // The write is recorded before the caller receives the failure.
  const again = await ann('PUT', `/api/employees/Unrecorded/${one.employeeId}`, { body: one });
  expect(again.status).toBe(200);
  expect(await changesSince(from)).toMatchObject([{ operation: 'create', row: `empid_${one.employeeId}` }]);
});

function sorted(names: readonly string[]): string {
  return names.toSorted().join();
}
