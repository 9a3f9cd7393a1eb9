import { gunzipSync } from 'node:zlib';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { logins } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { engineCore } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import type { Internal } from '../kit/internal.ts';
import { storageTables } from '../kit/storage.ts';
import { type Client, eventually, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const operator = product.as(['operator', 'hr']);

function daysAgo(days: number): string {
  return new Date(Date.now() - days * baseValues.DAY_MS).toISOString();
}

test('health reports storage and the model to anyone', async () => {
  // Storage that takes longer than three seconds is not ok.
  const reply = await eventually(
    () => product.as(undefined)('GET', '/api/health'),
    ({ status }) => status === 200,
  );
  expect(reply).toMatchObject({ status: 200, body: { status: 'ok', storage: 'ok', declaration: 'ok' } });
});

test('the OpenAPI description is valid and names every route', { tags: ['slow'] }, async () => {
  const { body } = await product.as(undefined)('GET', '/api/openapi.json');
  expect(await new Validator().validate(body)).toEqual({ valid: true });
  expect(Object.keys(body.paths)).toEqual(
    expect.arrayContaining([
      '/api/employees/{department}/{employeeId}',
      '/api/employees/by/emailCompanyWide/{email}',
      '/api/grants',
      '/api/logins',
    ]),
  );
});

describe('a message that cannot be handled', () => {
  test.each([
    ['no JSON', 'this is not JSON', /not JSON/],
    ['base64', Buffer.from('{"version":1}').toString('base64'), /base64/],
    ['of an unknown version', '{"version":99}', /version/],
    [
      'of an unknown entity',
      JSON.stringify({ version: 1, intent: 'i', entity: 'robots', table: 'robots', items: [] }),
      /does not declare/,
    ],
  ])(
    'is listed at once with its reason, replayed and deleted when it is %s',
    { tags: ['slow'] },
    async (_, text, reason) => {
      await product.storage.queue('index-changes').sendMessage(text);
      const mine = (items: Internal['Poison'][]) => items.filter((item) => item.text === text);
      const listed = await eventually(
        () => operator('GET', '/api/operations/poison'),
        ({ body }) => mine(body.items).length === 1,
      );
      const [poison] = mine(listed.body.items);
      expect(poison).toMatchObject({ queue: 'index-changes', attempts: 1, reason: expect.stringMatching(reason) });
      expect((await operator('POST', `/api/operations/poison/${poison?.id}/replay`)).status).toBe(202);
      const again = await eventually(
        () => operator('GET', '/api/operations/poison'),
        ({ body }) => mine(body.items).length === 1 && !body.items.some(({ id }: { id: string }) => id === poison?.id),
      );
      const [second] = mine(again.body.items);
      expect((await operator('DELETE', `/api/operations/poison/${second?.id}`)).status).toBe(204);
      expect((await operator('DELETE', `/api/operations/poison/${second?.id}`)).status).toBe(404);
      expect(mine((await operator('GET', '/api/operations/poison')).body.items)).toEqual([]);
    },
  );

  test('is listed from the poison queue of the host, newest first and page by page', async () => {
    for (const text of ['first', 'second', 'third']) await product.storage.queue('transfers-poison').sendMessage(text);
    expect(await product.runTimer('poison')).toBe(202);
    const items = (reply: { body: { items: { text: string; queue: string }[] } }) =>
      reply.body.items.filter(({ queue }) => queue === 'transfers');
    await eventually(
      () => operator('GET', '/api/operations/poison'),
      (reply) => items(reply).length === 3,
    );
    const page = await operator('GET', '/api/operations/poison?top=2');
    expect(page.body.items).toHaveLength(2);
    const next = /^<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
    const rest = await operator('GET', next);
    const ids = [...page.body.items, ...rest.body.items].map(({ id }: { id: string }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('is replayed with all others of its kind, page by page', { tags: ['slow'] }, async () => {
    const intent = (text: string) =>
      JSON.stringify({
        version: 1,
        intent: text,
        entity: 'employees',
        table: 'employees',
        items: [],
        // The message is older than a day: a younger one would return to its queue.
        history: { id: text, since: 1, attempts: 0, waits: 9 },
      });
    for (let count = 0; count < 5; count += 1)
      await product.storage.queue('index-changes-poison').sendMessage(intent(`bulk${count}`));
    await product.storage.queue('transfers-poison').sendMessage('left alone');
    expect(await product.runTimer('poison')).toBe(202);
    const texts = async () => {
      const { body } = await operator('GET', '/api/operations/poison?top=1000');
      return body.items.map(({ text }: { text: string }) => text);
    };
    const mine = async () => (await texts()).filter((text: string) => /bulk|left alone/.test(text));
    await eventually(
      async () => ({ status: 200, headers: new Headers(), body: await mine() }),
      ({ body }) => body.length === 6,
    );
    expect((await hr('POST', '/api/operations/poison/replays', { body: {} })).status).toBe(403);
    const replayed: string[] = [];
    const body = { queue: 'index-changes' };
    for (let next = '/api/operations/poison/replays?top=2'; next; ) {
      const page = await operator('POST', next, { body });
      expect(page.status).toBe(202);
      replayed.push(...page.body.replayed);
      next = /^<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
    }
    expect(replayed.length).toBeGreaterThanOrEqual(5);
    expect(await mine()).toEqual(['left alone']);
    expect((await operator('POST', '/api/operations/poison/replays', { body })).body.replayed).toEqual([]);
    expect((await operator('POST', '/api/operations/poison/replays', { body: { all: true } })).status).toBe(400);
  });
});

describe('logins', () => {
  test('are stored by the day and read over many days', { tags: ['slow'] }, async () => {
    const employeeId = '000777';
    const instants = [0, 1, 20].map(daysAgo);
    for (const at of instants)
      expect((await hr('POST', '/api/logins', { body: { employeeId, succeeded: true, at } })).status).toBe(201);
    const [today, , longAgo] = instants.map((at) => at.slice(0, 10));
    const all = await hr('GET', `/api/logins/${employeeId}?from=${longAgo}&to=${today}`);
    expect(all.body.items.map(({ at }: { at: string }) => at)).toEqual(instants.toReversed());
    const third = daysAgo(3);
    const offset = await hr('POST', '/api/logins', {
      body: { employeeId, succeeded: true, at: third.replace(/\.\d+Z$/, '+00:00') },
    });
    expect(offset).toMatchObject({ status: 201, body: { at: third.replace(/\.\d+Z$/, '.000Z') } });
    const one = await hr('POST', '/api/logins', { body: { employeeId, succeeded: false } });
    expect(await hr('GET', one.headers.get('location') ?? '')).toMatchObject({
      status: 200,
      body: { succeeded: false },
    });
    // A day inside the limits, because midnight may pass. Tests with a constant clock cover the exact limits.
    for (const at of [daysAgo(62), daysAgo(-3), 'yesterday'])
      expect(await hr('POST', '/api/logins', { body: { employeeId, succeeded: true, at } })).toMatchObject({
        status: 400,
        body: { field: 'at' },
      });
    expect((await hr('GET', `/api/logins/${employeeId}?from=yesterday`)).status).toBe(400);
  });

  test('of expired days are dropped by the timer, and other tables stay', async () => {
    const table = (days: number) => `logins${daysAgo(days).slice(0, 10).replaceAll('-', '')}`;
    // A table that is a day old now may be two days old when the timer runs.
    const [past, longPast, kept] = [table(61), table(90), table(59)];
    const current = [table(0), table(-1)];
    const innocent = ['logins', 'loginsarchive20200101', 'logins20201301', 'loginss20200101'];
    for (const name of [past, longPast, kept, ...innocent]) await product.storage.table(name).createTable();
    expect(await product.runTimer('roll-periods')).toBe(202);
    await expect.poll(() => storageTables.listTables(product.storage, 'logins')).not.toContain(past);
    const left = await storageTables.listTables(product.storage, 'logins');
    expect(left).not.toContain(longPast);
    expect(left).toEqual(expect.arrayContaining([kept, ...current, ...innocent]));
  });
});

describe('a grant', () => {
  test('lets a client read its own entity directly from storage, and nothing more', async () => {
    const own = somebody({ nationalId: '1' });
    await hr('POST', '/api/employees', { body: own });
    const asked = await product.as('reader', own.email)('POST', '/api/grants', {
      body: { entity: 'employees', scope: 'own' },
    });
    expect(asked.status).toBe(201);
    expect(asked.headers.get('cache-control')).toBe('no-store');
    const { url, token, permissions, expiresAt } = asked.body;
    expect(permissions).toBe('r');
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(15 * 60_000);
    const sas = new URLSearchParams(token);
    const row = `empid_${own.employeeId}`;
    expect([sas.get('tn'), sas.get('spk'), sas.get('srk'), sas.get('epk'), sas.get('erk')]).toEqual([
      'employees',
      'Sales',
      row,
      'Sales',
      row,
    ]);
    const accept = { accept: 'application/json;odata=nometadata' };
    const read = await fetch(`${url}?${token}`, { headers: accept });
    expect(read.status).toBe(200);
    expect(await read.json()).toMatchObject({ email: own.email, PartitionKey: 'Sales', RowKey: row });
    const write = await fetch(`${url}?${token}`, {
      method: 'MERGE',
      headers: { ...accept, 'content-type': 'application/json', 'if-match': '*' },
      body: '{"age":1}',
    });
    expect(write.status).toBe(403);
  });

  test('is rejected for another entity, for more than reading, and for an unknown identity', async () => {
    const body = { entity: 'employees', scope: 'own' };
    expect((await product.as('reader')('POST', '/api/grants', { body })).status).toBe(403);
    expect((await product.as('reader', 'nobody@contoso.com')('POST', '/api/grants', { body })).status).toBe(404);
    for (const wrong of [{ ...body, entity: 'logins' }, { ...body, scope: 'all' }, { entity: 'employees' }, []])
      expect((await product.as('reader', 'nobody@contoso.com')('POST', '/api/grants', { body: wrong })).status).toBe(
        400,
      );
    expect((await product.as(undefined)('POST', '/api/grants', { body })).status).toBe(401);
  });
});

test('a batch executes the valid actions in order and reports the others', { tags: ['slow'] }, async () => {
  const good = Array.from({ length: 40 }, () => somebody({ department: 'Batch' }));
  const bad = { ...somebody({ department: 'Batch' }), age: -1 };
  const taken = somebody({ department: 'Batch', email: String(good[3]?.email) });
  // An entity may be put again: the later action comes after the earlier one.
  const items = [...good, bad, taken, good[0], { ...good[1], firstName: 'Other' }, taken];
  const first = await hr('POST', '/api/employees/batch', { body: { actions: items.map((put) => ({ put })) } });
  const statuses = (reply: typeof first) => reply.body.results.map(({ status }: { status: number }) => status);
  expect(statuses(first)).toEqual([...good.map(() => 201), 400, 409, 304, 200, 409]);
  expect(first.body.results[40].problem).toMatchObject({ field: 'age' });
  const second = await hr('POST', '/api/employees/batch', { body: { actions: items.map((put) => ({ put })) } });
  expect(statuses(second)).toEqual([304, 200, ...good.slice(2).map(() => 304), 400, 409, 304, 200, 409]);
  const left = good.map((one, index) => (index === 1 ? { ...one, firstName: 'Other' } : one));
  expect((await hr('GET', '/api/employees/Batch')).body.items).toEqual(left);
});

test('an archive of a period is listed, downloaded by a link, and accepted by an import while its period is kept', {
  tags: ['slow'],
}, async () => {
  const employeeId = '000779';
  const { body: login } = await hr('POST', '/api/logins', { body: { employeeId, succeeded: true } });
  const later = engineCore.createEngine(product.storage, { now: () => Date.parse(login.at) + 63 * baseValues.DAY_MS });
  await featureUpkeep.rollPeriods(later, logins);
  expect((await hr('GET', `/api/logins/${employeeId}`)).body.items).toEqual([]);

  const path = '/api/operations/period-archives';
  const { body: list } = await product.as('operator')('GET', path);
  const name = `logins/${login.at.slice(0, 10)}/1.ndjson.gz`;
  const archive = list.items.find((item: { name: string }) => item.name === name);
  expect(archive).toMatchObject({ entity: 'logins', state: 'verified', rows: expect.any(Number) });
  expect((await hr('GET', path)).status).toBe(403);

  const grant = (who: Client, asked: unknown) => who('POST', `${path}/grants`, { body: asked });
  const other = { name: name.replace('logins', 'visits') };
  expect((await grant(operator, { name: `${name}x` })).status).toBe(404);
  expect((await grant(operator, other)).status).toBe(404);
  expect((await grant(operator, { ...other, more: 1 })).status).toBe(400);
  expect((await grant(hr, { name })).status).toBe(403);
  const link = await grant(operator, { name });
  expect(link.status).toBe(201);
  expect(link.headers.get('cache-control')).toBe('no-store');
  const file = await fetch(link.body.url);
  expect(file.headers.get('content-type')).toBe('application/gzip');
  const lines = gunzipSync(await file.bytes())
    .toString()
    .trim()
    .split('\n');
  expect(lines).toHaveLength(archive.rows);
  expect((await fetch(link.body.url, { method: 'DELETE' })).status).toBe(403);
  expect((await fetch(link.body.url.replace('1.ndjson.gz', '2.ndjson.gz'))).status).toBe(403);

  const items = lines.map((line) => JSON.parse(line)).filter((item) => item.employeeId === employeeId);
  const { body } = await hr('POST', '/api/logins/batch', { body: { actions: items.map((create) => ({ create })) } });
  expect(body.results).toMatchObject([{ status: 201 }]);
  expect((await hr('GET', `/api/logins/${employeeId}`)).body.items).toEqual([login]);
});

test('an index that an entity does not have cannot be built', async () => {
  expect(await operator('POST', '/api/operations/reindex/employees/last')).toMatchObject({
    status: 404,
    body: { field: 'index', accepted: expect.stringContaining('emailCompanyWide, ') },
  });
  expect((await operator('POST', '/api/operations/reindex/people/last')).status).toBe(404);
});

test('an entity without indexes can be checked, and cleaned up after its last index', async () => {
  const person = {
    kind: 'employee',
    country: 'NO',
    personId: 'e-9',
    firstName: 'Bo',
    lastName: 'Li',
    jobTitle: 'Cook',
  };
  expect((await hr('POST', '/api/people', { body: person })).status).toBe(201);
  const { status, body } = await operator('POST', '/api/operations/verify/people');
  expect({ status, body }).toEqual({ status: 200, body: { checked: 1, findings: [] } });
  const detailOf = async (...request: Parameters<Client>) => (await operator(...request)).body.detail;
  expect(await detailOf('GET', '/api/operations/verify/people')).toContain('no other row or blob depends on its rows');
  expect(await detailOf('POST', '/api/operations/clean-up/people/last')).toContain('Former index "last" of people');
});
