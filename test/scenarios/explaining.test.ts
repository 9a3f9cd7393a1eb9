import { expect, test } from 'vitest';
import { engineRead, engineReconcile } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { storageAccounts } from '../kit/storage.ts';
import { useProduct } from '../product.ts';
import { rowsOf, somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');

/** Returns all stored rows once the queues are empty. */
async function settled(): Promise<unknown> {
  const queues = ['index-changes', 'transfers'].map((queue) => product.storage.queue(queue));
  for (let left = 1; left > 0; ) {
    const properties = await Promise.all(queues.map((queue) => queue.getProperties()));
    left = properties.reduce((sum, { approximateMessagesCount = 0 }) => sum + approximateMessagesCount, 0);
  }
  const tables = await Array.fromAsync(product.storage.tables.listTables());
  const rows = await Promise.all(tables.map(({ name = '' }) => rowsOf(product.storage, name)));
  // Timers of the host write progress rows every hour and create an empty table every night.
  return rows.flat().filter(({ EntityType }) => EntityType !== 'verify');
}

test('an explanation lists what a request would do and its cost, and does none of it', { tags: ['slow'] }, async () => {
  const there = somebody({ department: 'Explained' });
  expect((await hr('POST', '/api/employees', { body: there })).status).toBe(201);
  await hr('GET', '/api/employees/Explained?top=1');
  const path = `/api/employees/Explained/${there.employeeId}`;
  const fresh = somebody({ department: 'Explained' });
  const requests: readonly [string, string, object?][] = [
    ['POST', '/api/employees', fresh],
    ['PUT', path, { ...there, lastName: 'Other' }],
    ['PATCH', path, { phone: '5' }],
    ['PATCH', path, { email: 'x@contoso.com' }],
    ['GET', path],
    ['GET', '/api/employees/Explained?phone=1&select=email'],
    ['GET', `/api/employees/by/emailCompanyWide/x@contoso.com`],
    ['GET', `/api/employees/by/lastName/Explained/Other`],
    ['POST', '/api/logins', { employeeId: '000001', succeeded: true }],
    ['PUT', '/api/messagehours/000001/2026-11-20/3', { count: 5 }],
    ['POST', '/api/messagehours/000001/2026-11-20/3/increments', { by: 1 }],
    ['POST', '/api/departments', { department: 'Explained', managerId: there.employeeId }],
    ['POST', '/api/employees/batch', { actions: [{ put: fresh }] }],
    ['POST', `${path}/archive`],
    ['POST', `${path}/move`, { department: 'Elsewhere' }],
    ['DELETE', path],
  ];
  let before = await settled();
  for (const [method, where, body] of requests) {
    const explained = await hr(method, `${where}${where.includes('?') ? '&' : '?'}explain=true`, { body });
    expect(explained.status, `${method} ${where}`).toBe(200);
    expect(await settled(), `${method} ${where} changed something`).toEqual(before);
    // The explanation predicts the cost of the real write.
    if (['archive', 'move'].some((last) => where.endsWith(last)) || method === 'DELETE') continue;
    const done = await hr(method, where, { body });
    expect(done.headers.get('server-timing'), `${method} ${where}`).toMatch(
      new RegExp(`"${explained.body.transactions} transactions?"`),
    );
    if (method !== 'GET') await hr('DELETE', path.replace(String(there.employeeId), String(fresh.employeeId)));
    before = await settled();
  }
});

test('a range and included children ask storage for the selected fields only', async () => {
  const one = somebody({ department: 'Projected' });
  await hr('POST', '/api/employees', { body: one });
  const selected = async (query: string) => {
    const { body } = await hr('GET', `/api/employees/Projected${query}&explain=true`);
    return body.steps.flatMap(({ select = ['everything'] }: { select?: string[] }) => select);
  };
  expect(await selected('?select=email')).toEqual(['email', 'EntityType', 'SourceRow']);
  expect(await selected('?top=1')).toEqual(['everything']);
  const ofChildren = await selected(`/${one.employeeId}?include=reviews&select=reviews.year`);
  expect(ofChildren).toContain('year');
  expect(ofChildren).not.toContain('rating');
});

test('a range sends its filter to storage', async () => {
  const { body } = await hr('GET', '/api/employees/Projected?phone=1&explain=true');
  expect(body.steps).toMatchObject([{ read: 'rows', filter: expect.stringContaining("phone eq '1'") }]);
});

test('executes concurrent requests and not the explained ones', async () => {
  const members = async (explainedFirst: boolean) => {
    const list = { index: '', table: 'employeesbylastname', partition: `Beside${explainedFirst}`, row: 'ids' };
    const join = (member: string) =>
      featureUpkeep.settleMember(
        product.storage,
        { ...list, member },
        { isWanted: true, hold: engineReconcile.holdFor({ now: Date.now }, 60_000) },
      );
    const work = [() => storageAccounts.explain(() => join('explained')), () => join('done')];
    await Promise.all((explainedFirst ? work : work.reverse()).map((begin) => begin()));
    return engineRead.membersOf(await engineRead.readList(product.storage, list));
  };
  expect(await members(true)).toEqual(['done']);
  expect(await members(false)).toEqual(['done']);
});

test('an explanation contains keys, actions and messages, and no values', async () => {
  const one = somebody({ department: 'Named' });
  const { body } = await hr('POST', '/api/employees?explain=true', { body: one });
  expect(body.transactions).toBe(10);
  expect(body.steps).toMatchObject([
    { write: 'message', queue: 'index-changes', does: 'send' },
    { write: 'rows', table: 'employeesbyemail', actions: [{ kind: 'insert', row: one.email }] },
    { write: 'rows', table: 'employeesbyid', actions: [{ kind: 'insert', row: one.employeeId }] },
    {
      write: 'rows',
      table: 'employees',
      partition: 'Named',
      actions: [
        {
          kind: 'insert',
          row: `empid_${one.employeeId}`,
          properties: expect.arrayContaining(['firstName', 'EntityType']),
        },
        { kind: 'insert', row: 'department', properties: ['EntityType', 'employeeCount'] },
        { kind: 'insert', row: `email_${one.email}` },
        { kind: 'insert', row: `lastname_${one.lastName}` },
      ],
    },
    { write: 'blob', container: 'audit', does: 'append' },
    { write: 'rows', table: 'employeesbyemail', actions: [{ kind: 'replace', row: one.email, conditional: true }] },
    { write: 'rows', table: 'employeesbyid', actions: [{ kind: 'replace', conditional: true }] },
    { read: 'row', table: 'employeesbylastname' },
    { write: 'rows', table: 'employeesbylastname', actions: [{ kind: 'insert' }] },
    { read: 'row', table: 'employees', row: `empid_${one.employeeId}` },
    { write: 'message', queue: 'index-changes', does: 'delete' },
  ]);
  expect((await hr('GET', `/api/employees/Named/${one.employeeId}`)).status).toBe(404);
  expect((await hr('DELETE', `/api/employees/Named/${one.employeeId}?explain=true`)).status).toBe(404);
  expect((await product.as('reader')('POST', '/api/employees?explain=true', { body: one })).status).toBe(403);
  expect((await hr('GET', '/api/employees/Named?explain=maybe')).status).toBe(400);
});

test('a public route has no explanation, which would name tables and blobs to anyone', async () => {
  const anyone = product.as(undefined);
  for (const path of ['/api/health', '/api/openapi.json', '/api/model'])
    expect(await anyone('GET', `${path}?explain=true`)).toMatchObject({ status: 400, body: { field: 'explain' } });
});
