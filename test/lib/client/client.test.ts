// @module-tag long

import { describe, expect, test, vi } from 'vitest';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import { PATIENCE_MS } from '../../patience.ts';
import {
  clientOf,
  FIELDS,
  found,
  json,
  KEY,
  lost,
  PERSON,
  problem,
  ROOT,
  type Sent,
  through,
  usePausedTime,
} from './fake-api.ts';

usePausedTime();

describe('paths', () => {
  test('put the key in the order of the model, whatever the order of the caller', async () => {
    const { client, sent } = clientOf([found(), found(), json({ items: [] })]);
    await client.employees.get({ employeeId: '000123', department: 'R&D/x ü' });
    await client.employees.by.emailCompanyWide({ email: 'a@b' });
    await client.employees.by.hireDate
      .range(
        { department: 'Sales' },
        { from: '2020', where: { age: { ge: 30, in: [1, 2] }, lastName: 'ge:x' }, first: 5 },
      )
      .page();
    expect(sent.map(({ url }) => url)).toEqual([
      `${ROOT}/employees/R%26D%2Fx%20%C3%BC/000123`,
      `${ROOT}/employees/by/emailCompanyWide/a%40b`,
      `${ROOT}/employees/by/hireDate/Sales?from=2020&top=5&age=ge%3A30&age=in%3A1%2C2&lastName=eq%3Age%3Ax`,
    ]);
  });

  test('ask the API for the past, also of own rows, and keep no ETag of it', async () => {
    const at = '2026-11-29T12:00:00Z';
    const { client, sent } = clientOf([found('"old"'), json({ items: [] }), found('"new"')], { direct: ['employees'] });
    expect(await client.employees.get(KEY, { at, select: ['email'] })).toMatchObject({ etag: '"old"' });
    await client.employees.range({ department: 'Sales' }, { at }).page();
    await client.employees.update(KEY, { lastName: 'C' });
    expect(sent.map(({ url, headers }) => [url, headers['if-match']])).toEqual([
      [`${ROOT}/employees/Sales/000123?at=2026-11-29T12%3A00%3A00Z&select=email`, undefined],
      [`${ROOT}/employees/Sales?at=2026-11-29T12%3A00%3A00Z`, undefined],
      [`${ROOT}/employees/Sales/000123`, undefined],
    ]);
  });

  test('escape the separator in a list of values', async () => {
    const { client, sent } = clientOf([json({ items: [] })]);
    const where = { lastName: { in: ['Lee, Ann', 'a\\b'] } };
    await client.employees.range({ department: 'Sales' }, { where }).page();
    expect(decodeURIComponent(String(sent[0]?.url.split('?')[1]))).toBe('lastName=in:Lee\\, Ann,a\\\\b');
  });

  test('reject a filter that would match other entities than it says, before a request is sent', async () => {
    const { client, sent } = clientOf([]);
    for (const lastName of [null, [], {}, { in: [] }, { eq: { a: 1 } }, { in: [['a']] }, { ge: null }]) {
      const where = { lastName } as never;
      await expect(
        client.employees.range({ department: 'Sales' }, { where }).page(),
        JSON.stringify(lastName),
      ).rejects.toMatchObject({
        code: 'invalid-input',
        message: expect.stringContaining('where.lastName'),
      });
    }
    expect(sent).toEqual([]);
  });

  test('reject dots, which a browser would resolve, before a request is sent', async () => {
    const { client, sent } = clientOf([]);
    for (const employeeId of ['..', '.', ''])
      await expect(client.employees.delete({ ...KEY, employeeId })).rejects.toMatchObject({ code: 'invalid-input' });
    await expect(client.departments.range({ department: 'Sales' }).page()).rejects.toMatchObject({
      message: 'A partition of departments has one entity: use get.',
    });
    expect(sent).toEqual([]);
  });

  test('reject what no path can have, before a request is sent', async () => {
    const { client, sent } = clientOf([]);
    for (const employeeId of ['a\0', '\ud800', ['a'] as never, 'x'.repeat(9_000)])
      await expect(client.employees.delete({ ...KEY, employeeId })).rejects.toMatchObject({ code: 'invalid-input' });
    expect(sent).toEqual([]);
  });

  test('are also in a header if the server cannot tell their values apart', async () => {
    const { client, sent } = clientOf([found(), found(), found()]);
    for (const department of ['a/b', 'a%2Fb', 'a']) await client.employees.get({ ...KEY, department });
    expect(sent.map(({ headers }) => headers['x-waws-unencoded-url'])).toEqual([
      `${ROOT}/employees/a%2Fb/000123`,
      `${ROOT}/employees/a%252Fb/000123`,
      undefined,
    ]);
  });

  test('list the accepted fields of a range that no route has', async () => {
    const { client } = clientOf([]);
    const wrong = { department: 'Sales', hireDate: '2020-01-01', employeeId: '000123' } as never;
    await expect(client.employees.by.hireDate.range(wrong).page()).rejects.toThrow(
      'A range over the index "hireDate" of employees begins with other fields: department; department, hireDate.',
    );
  });

  test('name the missing fields of an index, and its ranges if they accept fewer fields', async () => {
    const { client, sent } = clientOf([]);
    await expect(client.employees.by.hireDate({ department: 'Sales' } as never)).rejects.toMatchObject({
      code: 'invalid-input',
      message:
        'employees.by.hireDate needs department, hireDate. Missing: hireDate. employees.by.hireDate.range accepts fewer fields: department.',
    });
    await expect(client.employees.by.emailCompanyWide({} as never)).rejects.toThrow(
      /^employees\.by\.emailCompanyWide needs email\. Missing: email\.$/,
    );
    expect(sent).toEqual([]);
  });
});

describe('lists', () => {
  const page = (items: readonly object[], continuation?: string) =>
    json(
      { items },
      continuation ? { link: `</api/employees/Sales?top=2&continuation=${continuation}>; rel="next"` } : {},
    );

  test('are read page by page while they are iterated, and end after the first ones', async () => {
    const { client, sent } = clientOf([page([{ a: 1 }, { a: 2 }], 'x%3D'), page([{ a: 3 }])]);
    const items = [];
    for await (const item of client.employees.by.lastName.range({ department: 'Sales' }, { first: 3 }))
      items.push(item);
    expect(items).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
    expect(sent.map(({ url }) => url.split('?')[1])).toEqual(['top=3', 'top=1&continuation=x%3D']);
  });

  test('of an index are the same awaited or not', async () => {
    const { client, sent } = clientOf([page([{ a: 1 }]), page([{ a: 2 }])]);
    const listing = client.employees.by.lastName({ department: 'Sales', lastName: 'Li' });
    const awaited = await listing;
    expect(sent).toEqual([]);
    expect(await Array.fromAsync(awaited)).toEqual([{ a: 1 }]);
    expect(await Array.fromAsync(listing)).toEqual([{ a: 2 }]);
  });
});

describe('ETags', () => {
  test('seen last are sent with writes, and those of the own writes count', async () => {
    const { client, sent } = clientOf([
      found('"1"'),
      found('"2"'),
      found('"3"'),
      new Response(undefined, { status: 204 }),
    ]);
    await client.employees.get(KEY);
    await client.employees.update(KEY, { phone: '1' });
    await client.employees.put(KEY, FIELDS, { ifMatch: '*' });
    await client.employees.delete(KEY);
    expect(sent.map(({ headers }) => headers['if-match'])).toEqual([undefined, '"1"', '*', '"3"']);
  });

  test('never seen make an update unconditional, and a replace require an entity', async () => {
    const { client, sent } = clientOf([found('"1"'), found('"1"'), found('"1"')]);
    await client.employees.update(KEY, { phone: '1' });
    await client.employees.replace({ ...KEY, employeeId: '000124' }, FIELDS);
    await client.employees.put(KEY, FIELDS, { ifNoneMatch: '*' });
    expect(sent.map(({ headers }) => [headers['if-match'], headers['if-none-match']])).toEqual([
      [undefined, undefined],
      ['*', undefined],
      [undefined, '*'],
    ]);
  });

  test('that do not match throw a conflict with the current entity', async () => {
    const { client } = clientOf([found('"1"'), problem(412, 'etag-mismatch'), found('"2"', { phone: '7' })]);
    await client.employees.get(KEY);
    const error = await client.employees.update(KEY, { phone: '1' }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RowkeyClientError);
    expect(error).toMatchObject({ code: 'etag-mismatch', status: 412, entity: 'employees', problem: { status: 412 } });
    expect(client.employees.isConflict(error)).toBe(true);
    expect(client.departments.isConflict(error)).toBe(false);
    expect(error.current).toEqual({ etag: '"2"', values: { ...PERSON, phone: '7' } });
  });

  test('are not those of a create that failed: its error has the entity with the key', async () => {
    const { client, sent } = clientOf([problem(409, 'duplicate-key'), found('"5"')]);
    await expect(client.employees.create(PERSON)).rejects.toMatchObject({
      code: 'duplicate-key',
      current: { etag: '"5"' },
    });
    expect(sent.map(({ method }) => method)).toEqual(['POST', 'GET']);
  });
});

describe('batches', () => {
  const actions = [{ put: PERSON }, { delete: { department: 'Sales', employeeId: '000124' }, ifMatch: '"4"' }] as const;

  test('give the ETags of the next writes', async () => {
    const results = [{ status: 200, etag: '"7"' }, { status: 204 }];
    const { client, sent } = clientOf([json({ results }), found(), found()]);
    expect(await client.employees.batch(actions, { atomic: true })).toEqual([
      { outcome: 'stored' },
      { outcome: 'deleted' },
    ]);
    await client.employees.update(KEY, {});
    expect([sent[0]?.body, sent[1]?.headers['if-match']]).toEqual([{ actions, atomic: true }, '"7"']);
  });

  test('give the results of the other actions if the key of one cannot be in a path', async () => {
    const rejected = {
      status: 400,
      problem: { code: 'invalid-input', title: 'Validation failed', status: 400, detail: '' },
    };
    const { client } = clientOf([json({ results: [{ status: 201 }, rejected] })]);
    const dots = { department: 'Sales', employeeId: '..' };
    expect(await client.employees.batch([{ create: PERSON }, { delete: dots }])).toMatchObject([
      { outcome: 'created' },
      { outcome: 'failed', error: { code: 'invalid-input' } },
    ]);
  });

  test('are repeated only if nothing was done', async () => {
    const limited = problem(429, 'too-many-requests', { 'retry-after': '1' });
    const { client, sent } = clientOf([limited, json({ results: [] }), lost]);
    await through(client.employees.batch(actions));
    await expect(through(client.employees.batch(actions))).rejects.toMatchObject({ code: 'network' });
    expect(sent).toHaveLength(3);
  });

  test('are repeated after a lost reply if they have neither a delete nor a condition, with the same key', async () => {
    const { client, sent } = clientOf([lost, json({ results: [{ status: 201 }] })]);
    expect(await through(client.employees.batch([{ create: PERSON }]))).toEqual([{ outcome: 'created' }]);
    const keys = sent.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([expect.any(String), keys[0]]);
  });
});

test('asks who the caller is', async () => {
  const caller = { subject: 'ann', roles: ['hr'], claims: { email: 'a@b' } };
  const { client, sent } = clientOf([json(caller)]);
  expect(await client.me()).toEqual(caller);
  expect(sent).toMatchObject([{ method: 'GET', url: `${ROOT}/me` }]);
});

describe('a query', () => {
  const reads = (results: object) => json({ reads: results });

  test('sends the reads as JSON, and returns each as its call would', async () => {
    const problem = { code: 'forbidden', title: 'Forbidden', status: 403, detail: 'No.', type: 'x' };
    const { client, sent } = clientOf([
      reads({
        me: { status: 200, transactions: 1, etag: '"7"', entity: PERSON },
        nobody: { status: 404, transactions: 1, problem: { ...problem, code: 'not-found', status: 404 } },
        team: { status: 200, transactions: 2, items: [PERSON], continuation: 'x' },
        byMail: { status: 200, transactions: 1, entity: PERSON },
        hidden: { status: 403, transactions: 0, problem },
      }),
      found(),
    ]);
    const result = await client.query(({ employees }) => ({
      me: employees.get(KEY, { include: ['reviews'] }),
      nobody: employees.get({ ...KEY, employeeId: '000999' }),
      team: employees.range({ department: 'Sales' }, { where: { age: { ge: 30 } }, select: ['email'], top: 20 }),
      byMail: employees.by.emailCompanyWide({ email: 'a@b' }),
      hidden: employees.by.hireDate.range({ department: 'Sales' }, { from: '2020' }),
    }));
    expect(sent).toMatchObject([{ method: 'POST', url: `${ROOT}/query` }]);
    expect(sent[0]?.body).toEqual({
      reads: {
        me: { get: 'employees', key: KEY, include: ['reviews'] },
        nobody: { get: 'employees', key: { ...KEY, employeeId: '000999' } },
        team: {
          ...{ range: 'employees', partition: { department: 'Sales' } },
          ...{ where: { age: { ge: 30 } }, select: ['email'], top: 20 },
        },
        byMail: { by: 'emailCompanyWide', entity: 'employees', values: { email: 'a@b' } },
        hidden: { by: 'hireDate', entity: 'employees', values: { department: 'Sales' }, from: '2020' },
      },
    });
    expect(result).toEqual({
      me: { value: { etag: '"7"', values: PERSON }, transactions: 1 },
      nobody: { value: undefined, transactions: 1 },
      team: { value: { items: [PERSON], next: 'x' }, transactions: 2 },
      byMail: { value: PERSON, transactions: 1 },
      hidden: { error: expect.objectContaining({ code: 'forbidden', status: 403 }), transactions: 0 },
    });
    await client.employees.update(KEY, { phone: '1' });
    expect(sent[1]?.headers['if-match']).toBe('"7"');
  });

  test('is explained as a whole', async () => {
    const { client, sent } = clientOf([json({ steps: [], transactions: 1 })]);
    expect(await client.explain.query(({ employees }) => ({ me: employees.get(KEY) }))).toEqual({
      ...{ steps: [], transactions: 1 },
    });
    expect(sent[0]?.url).toBe(`${ROOT}/query?explain=true`);
  });
});

describe('a range to delete', () => {
  test('takes as many requests as it has links, and what was known of its entities is forgotten', async () => {
    const deleted = (number: number, next?: string) =>
      json(
        {
          deleted: number,
          failed: 1,
          problems: [{ code: 'referenced', title: 'x', status: 409, detail: 'It is used.' }],
        },
        next ? { link: `</api/employees/Sales?continuation=${next}>; rel="next"` } : {},
      );
    const { client, sent } = clientOf([found(), deleted(1000, 'a%2B'), deleted(5), found('"2"'), found('"3"')]);
    await client.employees.get(KEY);
    const progress: number[] = [];
    const result = await client.employees.deleteRange(
      { department: 'Sales' },
      { to: '000500', onProgress: (count) => progress.push(count) },
    );
    expect(result).toEqual({
      ...{ deleted: 1005, failed: 2 },
      errors: [1, 2].map(() => expect.objectContaining({ code: 'referenced', message: 'It is used.' })),
    });
    expect(progress).toEqual([1000, 1005]);
    await client.employees.update(KEY, { phone: '1' });
    expect(
      sent.slice(1).map(({ method, url, headers }) => [method, url.slice(ROOT.length), headers['if-match']]),
    ).toEqual([
      ['DELETE', '/employees/Sales?to=000500', undefined],
      ['DELETE', '/employees/Sales?to=000500&continuation=a%2B', undefined],
      ['PATCH', '/employees/Sales/000123', undefined],
    ]);
  });
});

test('the delete of an entity with many children returns its operation, and others nothing', async () => {
  const started = { operationId: '2026-11-20-1', operation: 'delete', status: 'running' };
  const { client, sent } = clientOf([
    json(started, {}, 202),
    json({ ...started, status: 'succeeded' }),
    new Response(null, { status: 204 }),
  ]);
  const operation = await client.employees.delete(KEY);
  expect(operation?.operationId).toBe(started.operationId);
  expect(await operation?.done()).toMatchObject({ status: 'succeeded' });
  expect(await client.employees.delete(KEY)).toBeUndefined();
  const path = `${ROOT}/employees/Sales/000123`;
  expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual([
    `DELETE ${path}`,
    `GET ${path}/delete/${started.operationId}`,
    `DELETE ${path}`,
  ]);
});

describe('totals', () => {
  const total = { group: { branch: 'A', soldOn: '2026-11' }, count: 1, sum: { amount: 1 }, min: {}, max: {} };

  test('are read by the group, whatever the order of its fields, and listed by its first ones', async () => {
    const { client, sent } = clientOf([json(total), json({ items: [total] })]);
    expect(await client.sales.totals.byMonth.get({ soldOn: '2026-11', branch: 'A' })).toEqual(total);
    const months = client.sales.totals.byMonth.range({ branch: 'A' }, { from: '2026-06', first: 3 });
    expect(await Array.fromAsync(months)).toEqual([total]);
    expect(sent.map(({ url }) => url.slice(ROOT.length))).toEqual([
      '/sales/totals/byMonth/A/2026-11',
      '/sales/totals/byMonth/A?from=2026-06&top=3',
    ]);
  });

  test('name the missing fields of a group, and the range that does without them', async () => {
    const { client } = clientOf([]);
    await expect(client.sales.totals.byMonth.get({ branch: 'A' } as never)).rejects.toThrow(
      'sales.totals.byMonth needs branch, soldOn. Missing: soldOn. sales.totals.byMonth.range accepts fewer fields: branch.',
    );
  });

  test('list the accepted fields of a range that no route has', async () => {
    const { client } = clientOf([]);
    await expect(client.sales.totals.byMonth.range({} as never).page()).rejects.toThrow(
      'A range over the totals "byMonth" of sales begins with other fields: branch.',
    );
    await expect(client.sales.totals['byYear' as 'byMonth'].get({} as never)).rejects.toThrow(
      'sales has no totals "byYear".',
    );
  });
});

describe('archived entities', () => {
  test('are read and deleted under the name of the archive', async () => {
    const gone = new Response(undefined, { status: 204 });
    const { client, sent } = clientOf([found('"1"'), json({ items: [] }), gone]);
    expect(await client.employees.archived.get(KEY, { select: ['email'] })).toMatchObject({ etag: '"1"' });
    await client.employees.archived.range({ department: 'Sales' }).page();
    await client.employees.archived.delete(KEY);
    expect(sent.map(({ method, url, headers }) => [method, url.slice(ROOT.length), headers['if-match']])).toEqual([
      ['GET', '/formeremployees/Sales/000123?select=email', undefined],
      ['GET', '/formeremployees/Sales', undefined],
      ['DELETE', '/formeremployees/Sales/000123', '"1"'],
    ]);
  });

  test('of an entity without an archive are an error that says so', async () => {
    const { client } = clientOf([]);
    await expect(client.departments.archived.get({ department: 'Sales' })).rejects.toThrow(
      'departments has no archive.',
    );
  });
});

describe('groups of fields', () => {
  const product = { categoryId: 1, productId: 1, productName: 'Chai', description: 'Tea' };

  test('are read with their entity', async () => {
    const { client, sent } = clientOf([json(product, { etag: '"1"' })]);
    const found = await client.products.get({ categoryId: 1, productId: 1 }, { include: ['text'] });
    expect(found?.values.description).toBe('Tea');
    expect(sent[0]?.url).toBe(`${ROOT}/products/1/1?include=text`);
  });

  test('are compared when the reply of a write was lost, and shown by a conflict', async () => {
    const mismatch = () => problem(412, 'etag-mismatch');
    const { client, sent } = clientOf([lost, mismatch, json(product, { etag: '"2"' })]);
    const key = { categoryId: 1, productId: 1 };
    expect(await through(client.products.update(key, { description: 'Tea' }))).toMatchObject({ etag: '"2"' });
    expect(sent.at(-1)?.url).toBe(`${ROOT}/products/1/1?include=text`);
  });
});

test('a file is sent in blocks of more than 4 MiB, with which storage is faster', async () => {
  const size = 20_000_000;
  const granted = { uploadId: 'u1', url: 'https://storage.example/uploads/u1?sig=x', headers: {} };
  const stored = Array.from({ length: 9 }, () => new Response(null, { status: 201 }));
  const { client, sent } = clientOf([json(granted), ...stored]);
  await client.employees.files.photo.put(KEY, new Blob([new Uint8Array(size)], { type: 'image/png' }));
  const blocks = sent.flatMap(({ url, body }) => (url.includes('comp=block&') ? [(body as Blob).size] : []));
  expect(blocks).toEqual([8_388_608, 8_388_608, size - 2 * 8_388_608]);
});

test('a file without a media type is sent through the API, which detects it', async () => {
  const { client, sent } = clientOf([json({ type: 'image/png', bytes: 1 })], { retries: 0 });
  expect(await client.employees.files.photo.put(KEY, new Blob(['x']))).toMatchObject({ type: 'image/png' });
  expect(sent).toMatchObject([{ method: 'PUT', headers: { 'content-type': 'application/octet-stream' } }]);
});

test('a change of a file is no conflict of the next change of its entity', async () => {
  const stored = () => json({ type: 'image/png', bytes: 1 });
  const [done, gone] = [found('"9"'), new Response(null, { status: 204 })];
  const { client, sent } = clientOf([found('"1"'), stored(), done, found('"2"'), gone, found('"10"')]);
  const { photo } = client.employees.files;
  await client.employees.get(KEY);
  await photo.put(KEY, new Blob(['x'], { type: 'image/png' }), { ifMatch: '"f"' });
  await client.employees.update(KEY, { phone: '1' });
  await client.employees.get(KEY);
  await photo.delete(KEY);
  await client.employees.update(KEY, { phone: '2' });
  const updates = sent.filter(({ method }) => method === 'PATCH');
  expect(updates.map(({ headers }) => headers['if-match'])).toEqual([undefined, undefined]);
});

describe('parts of an entity', () => {
  test('have a place of their own in the cache, and the ETag of the entity for writes', async () => {
    const { client, sent } = clientOf([
      found('"1"'),
      json({ email: 'a' }, { etag: '"1;view=x"' }),
      found('"2"'),
      found('"2"'),
    ]);
    await client.employees.get(KEY);
    expect(await client.employees.get(KEY, { select: ['email'] })).toMatchObject({ values: { email: 'a' } });
    await client.employees.update(KEY, {});
    await client.employees.get(KEY, { select: ['email'] });
    expect(sent.map(({ headers }) => [headers['if-none-match'], headers['if-match']])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      [undefined, '"1;view=x"'],
      [undefined, undefined],
    ]);
  });

  test('need not be returned by an update', async () => {
    const { client, sent } = clientOf([new Response(undefined, { status: 204, headers: { etag: '"2"' } }), found()]);
    expect(await client.employees.update(KEY, { phone: '1' }, { return: 'minimal' })).toMatchObject({ etag: '"2"' });
    await client.employees.update(KEY, { phone: '2' });
    expect(sent.map(({ headers }) => [headers.prefer, headers['if-match']])).toEqual([
      ['return=minimal', undefined],
      [undefined, '"2"'],
    ]);
  });
});

describe('tokens', () => {
  const authorization = ({ headers }: Sent) => headers.authorization;

  test('are asked for again once after a 401', async () => {
    const forced: boolean[] = [];
    const token = ({ forceRefresh }: { forceRefresh: boolean }) => {
      forced.push(forceRefresh);
      return `t${forced.length}`;
    };
    const { client, sent } = clientOf(
      [problem(401, 'unauthenticated'), found(), ...[1, 2].map(() => problem(401, 'unauthenticated'))],
      { token },
    );
    await client.employees.get(KEY);
    expect(sent.map(authorization)).toEqual(['Bearer t2', 'Bearer t3']);
    expect(forced).toEqual([false, false, true]);
    await expect(client.employees.get(KEY)).rejects.toMatchObject({ code: 'unauthenticated', status: 401 });
    expect(sent).toHaveLength(4);
  });

  test('given as text are not asked for again', async () => {
    const { client, sent } = clientOf([problem(401, 'unauthenticated')], { token: 'mine' });
    await expect(client.employees.get(KEY)).rejects.toMatchObject({ status: 401 });
    expect(sent.map(authorization)).toEqual(['Bearer mine']);
  });

  test('of another user end the cache', async () => {
    let user = 'one';
    const department = () => json({ department: 'Sales' }, { etag: '"1"', 'cache-control': 'private, max-age=60' });
    const { client, sent } = clientOf([department(), department()], { token: () => user });
    await client.departments.get({ department: 'Sales' });
    await client.departments.get({ department: 'Sales' });
    expect(sent).toHaveLength(1);
    user = 'two';
    await client.departments.get({ department: 'Sales' });
    expect(sent.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, undefined]);
  });

  test('are not sent again by a retry after the user has signed out', async () => {
    let user: string | undefined = 'one';
    const busy = () => {
      user = undefined;
      return problem(503, 'busy', { 'retry-after': '0' });
    };
    const { client, sent } = clientOf([busy, found()], { token: () => user });
    await through(client.employees.get(KEY));
    expect(sent.map(authorization)).toEqual(['Bearer one', undefined]);
  });

  test.each([
    ['signs in', undefined, 'two'],
    ['signs out', 'one', undefined],
    ['is replaced', 'one', 'two'],
  ])('keep no reply that arrives after the user %s', async (_, before, after) => {
    let user = before;
    const arrives = Promise.withResolvers<void>();
    const department = (title: string) =>
      json({ department: title }, { etag: '"1"', 'cache-control': 'private, max-age=60' });
    const { client, sent } = clientOf(
      [
        async () => {
          await arrives.promise;
          return department('of the first');
        },
        department('of the second'),
        department('of the second'),
      ],
      { token: () => user },
    );
    const slow = client.departments.get({ department: 'Sales' });
    await vi.waitUntil(() => sent.length === 1, PATIENCE_MS);
    user = after;
    expect((await client.departments.get({ department: 'Other' }))?.values.department).toBe('of the second');
    arrives.resolve();
    expect((await slow)?.values.department).toBe('of the first');
    expect((await client.departments.get({ department: 'Sales' }))?.values.department).toBe('of the second');
    expect(sent.map(authorization)).toEqual([before, after, after].map((one) => one && `Bearer ${one}`));
  });
});

describe('the cache', () => {
  test('revalidates by ETag, and gives each caller a copy', async () => {
    const { client, sent } = clientOf([
      found('"1"'),
      new Response(undefined, { status: 304, headers: { etag: '"1"' } }),
    ]);
    const first = await client.employees.get(KEY);
    Object.assign(Object(first?.values), { email: 'changed' });
    expect(await client.employees.get(KEY)).toEqual({ etag: '"1"', values: PERSON });
    expect(sent[1]?.headers['if-none-match']).toBe('"1"');
  });

  test('answers without a request while max-age lasts, until a write', async () => {
    const headers = { etag: '"1"', 'cache-control': 'private, max-age=60' };
    const department = () => json({ department: 'Sales' }, headers);
    const { client, sent, calls } = clientOf([department(), department(), department(), department()]);
    const read = () => client.departments.get({ department: 'Sales' });
    await read();
    await read();
    expect(calls.at(-1)).toMatchObject({ way: 'cache', path: '/departments/Sales', transactions: 0 });
    vi.advanceTimersByTime(60_001);
    await read();
    expect(sent).toHaveLength(2);
    await client.departments.update({ department: 'Sales' }, { description: 'x' });
    await read();
    expect(sent).toHaveLength(4);
  });

  test('keeps only the newest entities', async () => {
    const { client, sent } = clientOf([found(), found(), found()], { cacheSize: 1 });
    await client.employees.get(KEY);
    await client.employees.get({ ...KEY, employeeId: '000124' });
    await client.employees.get(KEY);
    expect(sent[2]?.headers['if-none-match']).toBeUndefined();
  });

  test('forgets an entity that is gone', async () => {
    const { client, sent } = clientOf([found('"1"'), problem(404, 'not-found'), found('"2"')]);
    await client.employees.get(KEY);
    expect(await client.employees.get(KEY)).toBeUndefined();
    await client.employees.update(KEY, {});
    expect(sent[2]?.headers['if-match']).toBeUndefined();
  });
});

test('reports what each exchange cost and which way it took', async () => {
  const timing = { etag: '"1"', 'server-timing': 'storage;dur=3.1;desc="10 transactions", audit;dur=2.0' };
  const { client, calls } = clientOf([lost, json(PERSON, timing)]);
  await through(client.employees.get(KEY));
  expect(calls).toEqual([
    expect.objectContaining({ path: '/model', status: 200 }),
    { method: 'GET', path: '/employees/Sales/000123', status: 0, transactions: 0, milliseconds: 0, way: 'api' },
    { method: 'GET', path: '/employees/Sales/000123', status: 200, transactions: 10, milliseconds: 0, way: 'api' },
  ]);
});

test('explains the same request, and changes nothing that the client knows', async () => {
  const explanation = { steps: [], transactions: 3 };
  const { client, sent } = clientOf([found('"1"'), ...[1, 2, 3].map(() => json(explanation)), found('"2"')]);
  await client.employees.get(KEY);
  expect(await client.explain.employees.update(KEY, { phone: '1' })).toEqual(explanation);
  expect(await client.explain.employees.range({ department: 'Sales' }, { from: '1' })).toEqual(explanation);
  expect(await client.explain.employees.by.emailCompanyWide({ email: 'a' })).toEqual(explanation);
  await client.employees.update(KEY, { phone: '1' });
  expect(sent.map(({ method, url }) => `${method} ${url.slice(ROOT.length)}`).slice(1)).toEqual([
    'PATCH /employees/Sales/000123?explain=true',
    'GET /employees/Sales?from=1&explain=true',
    'GET /employees/by/emailCompanyWide/a?explain=true',
    'PATCH /employees/Sales/000123',
  ]);
  expect(sent.at(-1)?.headers['if-match']).toBe('"1"');
});

test('loads the model once, and again after a failure', async () => {
  let asked = 0;
  const fetch = (async (url: string) => {
    if (!url.endsWith('/model')) return found();
    asked += 1;
    return asked === 1 ? problem(500, 'internal') : json({ entities: {} });
  }) as unknown as typeof globalThis.fetch;
  const { client } = clientOf([], { fetch });
  await expect(client.employees.get(KEY)).rejects.toMatchObject({ code: 'internal' });
  for (const _ of [1, 2])
    await expect(client.employees.get(KEY)).rejects.toThrow('The model of the API has no entity "employees".');
  expect(asked).toBe(2);
});
