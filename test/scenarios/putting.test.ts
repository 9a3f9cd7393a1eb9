import { randomUUID } from 'node:crypto';
import { RestError } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { tryFaults } from '../fault-driver.ts';
import { type FaultyHttpClient, faultyHttpClient } from '../faulty-http-client.ts';
import { employees, movies, people } from '../fixtures/model.ts';
import { type ChangeRecord, engineCore, engineRead, engineWrite } from '../kit/engine.ts';
import { useProduct } from '../product.ts';
import { expectIndexesToAgree, openWorld, somebody, type World } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const world = await openWorld(import.meta.url);

const person = (firstName: string) => ({ firstName, kind: 'employee', jobTitle: 'Clerk' });
const codeOf = (error: { code: string }) => error.code;

async function operationsOf(work: () => Promise<unknown>): Promise<string[]> {
  let kept: readonly ChangeRecord[] = [];
  await engineCore.collectChanges('ann', work, async (changes) => {
    kept = changes;
  });
  return kept.map(({ operation }) => operation);
}

test('PUT creates an entity with Location, replaces it, and repeats without effect', { tags: ['slow'] }, async () => {
  const { department, employeeId, ...one } = somebody();
  const path = `/api/employees/${department}/${employeeId}`;
  const created = await hr('PUT', path, { body: one });
  expect(created).toMatchObject({ status: 201, body: { department, employeeId, ...one } });
  expect(created.headers.get('location')).toBe(path);
  const replaced = await hr('PUT', path, { body: { ...one, phone: '1' } });
  expect(replaced).toMatchObject({ status: 200, body: { phone: '1' } });
  expect(replaced.headers.get('location')).toBeNull();
  const again = await hr('PUT', path, { body: { ...one, phone: '1' } });
  expect([again.status, again.headers.get('etag')]).toEqual([200, replaced.headers.get('etag')]);
});

test('PUT of an entity that is one row returns 200 without a read, whether the entity existed or not', async () => {
  const path = '/api/people/UK/put';
  const stored = await hr('PUT', path, { body: { ...person('Ann'), lastName: 'Lee' } });
  expect(stored).toMatchObject({ status: 200, body: { country: 'UK', personId: 'put', ...person('Ann') } });
  expect((await hr('PUT', path, { body: person('Bea') })).status).toBe(200);
  const { body, headers } = await hr('GET', path);
  expect(body).toEqual({ country: 'UK', personId: 'put', ...person('Bea') });
  const etag = String(headers.get('etag'));
  for (const named of [etag, '*'])
    expect((await hr('PUT', path, { body: person('Cid'), headers: { 'if-match': named } })).status).toBe(200);
  const stale = await hr('PUT', path, { body: person('Dan'), headers: { 'if-match': etag } });
  const current = (await hr('GET', path)).headers.get('etag');
  expect(stale).toMatchObject({ status: 412, body: { code: 'etag-mismatch', etag: current } });
  expect((await hr('DELETE', path, { headers: { 'if-match': etag } })).status).toBe(412);
  expect((await hr('DELETE', path)).status).toBe(204);
  expect(await hr('DELETE', path)).toMatchObject({ status: 404, body: { detail: 'people "UK/put" not found.' } });
});

test('PATCH with Prefer: return=minimal merges fields without a read, and validates them', async () => {
  const path = `/api/doorevents/Doors/000001/2026112008/${randomUUID()}`;
  const headers = { prefer: 'return=minimal' };
  expect((await hr('PATCH', path, { body: { door: 'East' }, headers })).status).toBe(404);
  const { headers: first } = await hr('PUT', path, { body: { door: 'East' } });
  const merged = await hr('PATCH', path, { body: { door: 'West' }, headers });
  expect([merged.status, merged.headers.get('preference-applied')]).toEqual([204, 'return=minimal']);
  const read = await hr('GET', path);
  expect([read.body.door, read.headers.get('etag')]).toEqual(['West', merged.headers.get('etag')]);
  for (const wrong of [{ door: '' }, { door: 5 }, { other: 1 }, { door: null }, { hour: '2026112009' }])
    expect((await hr('PATCH', path, { body: wrong, headers })).status, JSON.stringify(wrong)).toBe(400);
  const stale = await hr('PATCH', path, {
    body: { door: 'A' },
    headers: { ...headers, 'if-match': String(first.get('etag')) },
  });
  expect(stale).toMatchObject({ status: 412, body: { etag: merged.headers.get('etag') } });
  expect((await hr('GET', path)).body).toEqual(read.body);
});

test('a put without a condition is sent once, and again only if storage was too busy', async () => {
  const key = { country: 'UK', personId: 'once' };
  const put = async (client: FaultyHttpClient, conditions = {}) => {
    const engine = world.engineThrough(client);
    const done = engineWrite.putEntity(engine, people, key, person('Ann'), conditions);
    return [await done.then(() => 'done', codeOf), client.calls];
  };
  // The row is read after it, and tells by the id of the write whether the write succeeded.
  expect(await put(faultyHttpClient('reply lost', 1))).toEqual(['done', 2]);
  expect(await put(faultyHttpClient('server error', 1))).toEqual(['storage-unavailable', 2]);
  expect(await put(faultyHttpClient('reset', 1))).toEqual(['storage-unavailable', 2]);
  expect(await put(faultyHttpClient('throttled', 1))).toEqual(['done', 2]);
  // Under an ETag, storage rejects the repetition, and the write recognizes itself.
  const { etag } = await engineRead.readEntity(world.engine, people, key);
  expect(await put(faultyHttpClient('reply lost', 1), { ifMatch: etag })).toEqual(['done', 3]);
});

test('PUT rejects a condition that does not hold, and then changes nothing', async () => {
  const path = '/api/people/UK/conditions';
  for (const named of ['*', '"any"']) {
    const absent = await hr('PUT', path, { body: person('Ann'), headers: { 'if-match': named } });
    expect(absent).toMatchObject({ status: 412, body: { code: 'etag-mismatch' } });
  }
  expect((await hr('GET', path)).status).toBe(404);
  const first = { body: person('Ann'), headers: { 'if-none-match': '*' } };
  const { status, headers } = await hr('PUT', path, first);
  expect(status).toBe(201);
  const etag = headers.get('etag');
  expect(await hr('PUT', path, first)).toMatchObject({ status: 412, body: { code: 'etag-mismatch', etag } });
  expect((await hr('GET', path)).headers.get('etag')).toBe(etag);
});

test('PUT creates nothing whose key or fields a POST would reject', async () => {
  const film = { title: 'T', year: 2000, genres: ['Drama'], cast: ['Ann'] };
  const wrong = await hr('PUT', '/api/movies/Crime/T/2000/0', { body: film });
  expect(wrong).toMatchObject({ status: 400, body: { field: 'genre' } });
  const counted = await hr('PUT', '/api/departments/Put', { body: { employeeCount: 5 } });
  expect(counted).toMatchObject({ status: 400, body: { field: 'employeeCount' } });
  const { department, employeeId, ...one } = somebody();
  const path = `/api/employees/${department}/${employeeId}`;
  expect((await product.as('reader')('PUT', path, { body: one })).status).toBe(403);
  expect((await hr('PUT', path, { body: { ...one, email: 'no address' } })).status).toBe(400);
  expect((await hr('GET', path)).status).toBe(404);
  expect(await expectIndexesToAgree(world.storage, movies)).toEqual([]);
});

test('a put notes a create or a replace, or a put without a read, also when a reply is lost', {
  tags: ['slow'],
}, async () => {
  const { department, employeeId, ...one } = somebody();
  const key = { department, employeeId };
  const put = (phone: string) => () => engineWrite.putEntity(world.engine, employees, key, { ...one, phone });
  expect(await operationsOf(put('1'))).toEqual(['create']);
  expect(await operationsOf(put('2'))).toEqual(['replace']);
  expect(await operationsOf(put('2'))).toEqual([]);
  await engineWrite.deleteEntity(world.engine, employees, key);
  let isLost = false;
  const lossy = world.engineThrough({
    async sendRequest(request) {
      const response = await httpClient.sendRequest(request);
      const isCommit = request.url.includes('$batch') && !response.bodyAsText?.includes('HTTP/1.1 4');
      if (isLost || !isCommit) return response;
      isLost = true;
      throw new RestError('reply lost', { code: 'ECONNRESET', request });
    },
  });
  const { isCreated } = await engineWrite.putEntity(lossy, employees, key, one);
  expect([isCreated, isLost]).toEqual([true, true]);
  const noted = { country: 'UK', personId: 'noted' };
  const conditions = [{}, { ifMatch: '*' }, { ifNoneMatch: '"x"' }];
  const putPerson = async () => {
    for (const each of conditions)
      await engineWrite.putEntity(world.engine, people, noted, person(`Ann${each.ifMatch}`), each);
  };
  expect(await operationsOf(putPerson)).toEqual(['put', 'replace', 'replace']);
});

test('a body may repeat the key of the path in another form of the same value', async () => {
  const at = `${new Date().toISOString().slice(0, 19)}Z`;
  const key = { employeeId: '000001', at, loginId: randomUUID() };
  expect((await hr('POST', '/api/logins', { body: { ...key, succeeded: true } })).status).toBe(201);
  const path = `/api/logins/${Object.values(key).join('/')}`;
  for (const [method, succeeded] of [
    ['PUT', true],
    ['PATCH', false],
  ] as const)
    expect(await hr(method, path, { body: { ...key, succeeded } })).toMatchObject({ status: 200, body: { succeeded } });
  const actions = [{ patch: { ...key, succeeded: true } }];
  expect((await hr('POST', '/api/logins/batch', { body: { actions } })).body.results).toMatchObject([{ status: 200 }]);
  const other = { ...key, at: '2020-01-01T00:00:00Z' };
  expect(await hr('PATCH', path, { body: other })).toMatchObject({ status: 400, body: { field: 'at' } });
});

test('of two creates of one key that each claim one of its two unique values first, one succeeds', async () => {
  const one = somebody({ department: 'Put' });
  const tables = ['employeesbyemail', 'employeesbyid'];
  const claimed = tables.map(() => Promise.withResolvers<void>());
  const writers = tables.map((_, writer) => {
    const seen = new Set<number>();
    return world.engineThrough({
      async sendRequest(request) {
        const table = tables.findIndex((name) => request.method === 'POST' && request.url.includes(name));
        if (table < 0 || seen.has(table)) return httpClient.sendRequest(request);
        seen.add(table);
        if (table !== writer) await claimed[table]?.promise;
        const response = await httpClient.sendRequest(request);
        if (table === writer) claimed[table]?.resolve();
        return response;
      },
    });
  });
  const results = await Promise.all(
    writers.map((engine) => engineWrite.createEntity(engine, employees, one).catch(codeOf)),
  );
  expect(results.filter((result) => typeof result === 'object').length, JSON.stringify(results)).toBe(1);
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
});

test('of concurrent puts of one new key one creates, and those that must create fail', { tags: ['slow'] }, async () => {
  for (let round = 1; round <= 5; round += 1) {
    const { department, employeeId, ...one } = somebody({ department: 'Put' });
    const key = { department, employeeId };
    const put = (index: number, ifNoneMatch?: string) => {
      // An engine of its own stands for a process of its own.
      const values: Values = { ...one, phone: String(index) };
      const engine = world.engineThrough(faultyHttpClient());
      return engineWrite.putEntity(engine, employees, key, values, { ifNoneMatch }).catch(codeOf);
    };
    const done = await Promise.all([put(1), put(2), put(3, '*'), put(4, '*')]);
    const created = done.filter((result) => typeof result === 'object' && result.isCreated);
    expect(created.length, JSON.stringify(done)).toBe(1);
    const failed = done.filter((result) => typeof result === 'string');
    expect(failed.every((code) => code === 'etag-mismatch' || code === 'busy')).toBe(true);
    const { values } = await engineRead.readEntity(world.engine, employees, key);
    expect(['1', '2', '3', '4']).toContain(values.phone);
  }
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
});

test('puts and deletes of one entity by several processes leave its indexes right', { tags: ['slow'] }, async () => {
  const { department, employeeId, ...one } = somebody({ department: 'Put and deleted' });
  const key = { department, employeeId };
  const writers = Array.from({ length: 4 }, () => world.engineThrough(faultyHttpClient()));
  const results = await Promise.all(
    writers.map(async (engine, writer) => {
      const codes: string[] = [];
      for (let turn = 0; turn < 6; turn += 1) {
        const values = { ...one, phone: `${writer}-${turn}`, lastName: `Name${turn % 2}` };
        const work =
          turn % 3 === 2
            ? engineWrite.deleteEntity(engine, employees, key)
            : engineWrite.putEntity(engine, employees, key, values);
        await work.catch((error) => codes.push(codeOf(error)));
      }
      return codes;
    }),
  );
  const unexpected = results.flat().filter((code) => !['not-found', 'busy', 'duplicate-key'].includes(code));
  expect(unexpected).toEqual([]);
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
});

test('a value that a rejected write claimed is free at once, and a corrected request succeeds', async () => {
  const taken = somebody();
  await engineWrite.createEntity(world.engine, employees, taken);
  const { department, employeeId, ...one } = somebody();
  const key = { department, employeeId };
  const path = `/api/employees/${department}/${employeeId}`;
  expect(await hr('POST', '/api/employees', { body: { ...key, ...one, email: taken.email } })).toMatchObject({
    status: 409,
  });
  expect(await hr('PUT', path, { body: one })).toMatchObject({ status: 201 });
  // The email of a create whose key exists is claimed before the conflict shows.
  const email = `free-${one.email}`;
  expect(await hr('POST', '/api/employees', { body: { ...key, ...one, email } })).toMatchObject({ status: 409 });
  expect(await hr('POST', '/api/employees', { body: { ...somebody(), email } })).toMatchObject({ status: 201 });
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
});

test('a rejected write leaves no claim after a fault at any storage call', { tags: ['slow'] }, async () => {
  const taken = somebody();
  await engineWrite.createEntity(world.engine, employees, taken);
  const attempt = (engine: World['engine'], email: unknown) =>
    engineWrite.createEntity(engine, employees, { ...taken, email }).catch(codeOf);
  await tryFaults(async ({ fault = '', label, client, timing }) => {
    const email = `${label.replaceAll(' ', '-')}@contoso.com`;
    const outcome = await attempt(world.engineThrough(client, timing), email);
    // An insert is sent once. Without a reply, nobody knows whether it was rejected.
    const unknown = ['reset', 'server error', 'reply lost'].includes(fault) ? ['storage-unavailable'] : [];
    if (!timing) expect(['duplicate-key', ...unknown], label).toContain(outcome);
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
    const other = await engineWrite.createEntity(world.engine, employees, somebody({ email }));
    await engineWrite.deleteEntity(world.engine, employees, other.values);
  });
});
