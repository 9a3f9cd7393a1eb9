import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');

async function hire(over: Record<string, unknown> = {}) {
  const values = somebody(over);
  const created = await hr('POST', '/api/employees', { body: values });
  expect(created).toMatchObject({ status: 201, body: values });
  return { values, path: created.headers.get('location') ?? '', etag: created.headers.get('etag') ?? '' };
}

describe('an employee over HTTP', () => {
  test('is created, read, not sent again while unchanged, and reports its cost', { tags: ['slow'] }, async () => {
    const values = somebody();
    const created = await hr('POST', '/api/employees', { body: values });
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toBe(`/api/employees/Sales/${values.employeeId}`);
    expect(created.headers.get('server-timing')).toMatch(
      /^storage;dur=[\d.]+;desc="10 transactions", audit;dur=[\d.]+;desc="appends, shared"$/,
    );
    const etag = created.headers.get('etag') ?? '';
    const read = await reader('GET', `/api/employees/Sales/${values.employeeId}`);
    expect(read).toMatchObject({ status: 200, body: values });
    // A reader gets fewer fields and therefore another ETag.
    const ofView = read.headers.get('etag') ?? '';
    expect(ofView).not.toBe(etag);
    expect(ofView.startsWith(etag.slice(0, -1))).toBe(true);
    expect(read.headers.get('server-timing')).toContain('"1 transaction"');
    const again = await reader('GET', `/api/employees/Sales/${values.employeeId}`, {
      headers: { 'if-none-match': ofView },
    });
    expect(again).toMatchObject({ status: 304, body: '' });
  });

  test('is replaced and patched only with its current ETag', { tags: ['slow'] }, async () => {
    const { values, path, etag } = await hire();
    const replaced = await hr('PUT', path, { body: { ...values, phone: '1' }, headers: { 'if-match': etag } });
    expect(replaced).toMatchObject({ status: 200, body: { ...values, phone: '1' } });
    const stale = await hr('PATCH', path, { body: { phone: '2' }, headers: { 'if-match': etag } });
    expect(stale).toMatchObject({
      status: 412,
      body: { type: '/api/problems#etag-mismatch', etag: replaced.headers.get('etag') },
    });
    expect(stale.headers.get('etag')).toBe(replaced.headers.get('etag'));
    const patched = await hr('PATCH', path, { body: { phone: null, age: 40 } });
    expect(patched.body).toEqual({ ...values, age: 40 });
    expect((await hr('GET', path)).body).toEqual(patched.body);
    const moved = await hr('PATCH', path, { body: { department: 'Marketing' } });
    expect(moved).toMatchObject({ status: 400, body: { field: 'department' } });
    expect((await hr('DELETE', path, { headers: { 'if-match': etag } })).status).toBe(412);
    expect((await hr('DELETE', path)).status).toBe(204);
    expect((await reader('GET', path)).status).toBe(404);
    expect((await hr('DELETE', path)).status).toBe(404);
  });

  test('is not written when If-None-Match names its ETag, and only GET returns 304', { tags: ['slow'] }, async () => {
    const { values, path, etag } = await hire();
    const body = { ...values, firstName: 'Changed' };
    for (const named of [etag, '*'])
      for (const [method, sent] of [
        ['PUT', { body }],
        ['PATCH', { body: { phone: '1' } }],
        ['DELETE', {}],
      ] as const) {
        const refused = await hr(method, path, { ...sent, headers: { 'if-none-match': named } });
        expect(refused).toMatchObject({ status: 412, body: { type: '/api/problems#etag-mismatch', etag } });
      }
    const read = await reader('GET', path);
    expect(read.body).toEqual(values);
    expect((await hr('GET', path)).headers.get('etag')).toBe(etag);
    const other = { headers: { 'if-none-match': '"another"' } };
    expect(await hr('PUT', path, { body, ...other })).toMatchObject({ status: 200, body });
    expect((await hr('DELETE', path, other)).status).toBe(204);
    // The deleted employee keeps the email until the reconciler has removed the index entry.
    const create = () => hr('PUT', path, { body, headers: { 'if-none-match': '*' } });
    const created = await eventually(create, ({ status }) => status !== 503);
    expect(created).toMatchObject({ status: 201, body });
    expect(created.headers.get('location')).toBe(path);
  });

  test.each([
    ['a field that is not declared', { nickname: 'J' }, 'nickname'],
    ['a value of the wrong type', { age: 'old' }, 'age'],
    ['a number out of range', { age: 151 }, 'age'],
    ['a field that is needed and missing', { lastName: undefined }, 'lastName'],
    ['an id that is not six digits', { employeeId: '12' }, 'employeeId'],
    ['half of a character', { jobTitle: 'a\ud800' }, 'jobTitle'],
    ['half of a character in its key', { department: 'a\udc00' }, 'department'],
    ['a key that is lost in a path', { department: '..' }, 'department'],
    ['a key that a slash is taken for', { department: 'a%2fb' }, 'department'],
    ['a key that is too long once it is escaped', { department: '/'.repeat(200) }, 'department'],
  ])('is rejected with %s, which the problem names', { tags: ['slow'] }, async (_, wrong, field) => {
    const values = { ...somebody({ department: 'Refused' }), ...wrong };
    expect(await hr('POST', '/api/employees', { body: values })).toMatchObject({ status: 400, body: { field } });
    expect((await reader('GET', '/api/employees/Refused')).body).toEqual({ items: [] });
  });

  test('is rejected when the body is not a JSON object of accepted size', { tags: ['slow'] }, async () => {
    for (const [body, status] of [
      ...['{', '[]', '"text"', '{"__proto__":{"a":1}}'].map((text) => [text, 400] as const),
      [`{"lastName":"${'x'.repeat(1_100_000)}"}`, 413] as const,
    ]) {
      const refused = await hr('POST', '/api/employees', { body });
      expect(refused.status).toBe(status);
      expect(refused.headers.get('content-type')).toBe('application/problem+json');
    }
    expect(await hr('PUT', '/api/employees/Sales/999999', { body: '[1]' })).toMatchObject({ status: 400 });
  });

  test('is rejected when its key or email is taken, without disclosing the other entity', async () => {
    const { values } = await hire({ firstName: 'Secretive' });
    const sameKey = await hr('POST', '/api/employees', { body: somebody({ employeeId: values.employeeId }) });
    expect(sameKey).toMatchObject({ status: 409, body: { type: '/api/problems#duplicate-key', field: 'employeeId' } });
    for (const department of ['Sales', 'Marketing']) {
      const sameEmail = await hr('POST', '/api/employees', {
        body: somebody({ department, email: values.email.toUpperCase() }),
      });
      expect(sameEmail).toMatchObject({ status: 409, body: { type: '/api/problems#duplicate-value', field: 'email' } });
      expect(JSON.stringify(sameEmail.body)).not.toContain('Secretive');
    }
  });

  test('is rejected when another department uses its number, and found by its number', async () => {
    const { values, path } = await hire({ department: 'Numbers' });
    const twice = await hr('POST', '/api/employees', {
      body: somebody({ department: 'Other numbers', employeeId: values.employeeId }),
    });
    expect(twice).toMatchObject({ status: 409, body: { type: '/api/problems#duplicate-value', field: 'employeeId' } });
    expect(JSON.stringify(twice.body)).not.toContain('Numbers');
    const put = await hr('PUT', `/api/employees/Other/${values.employeeId}`, {
      body: somebody({ department: 'Other', employeeId: values.employeeId }),
    });
    expect(put).toMatchObject({ status: 409, body: { type: '/api/problems#duplicate-value', field: 'employeeId' } });
    const found = await reader('GET', `/api/employees/by/id/${values.employeeId}`);
    expect(found).toMatchObject({ status: 200, body: values });
    expect(found.headers.get('content-location')).toBe(path);
  });

  test('is found by its email and name in a department with the name of a route', { tags: ['slow'] }, async () => {
    for (const department of ['archive', 'move', 'by', 'photo', 'batch', 'Archive']) {
      const { values, path } = await hire({ department });
      expect((await reader('GET', path)).body).toEqual(values);
      const byEmail = await reader('GET', `/api/employees/by/email/${department}/${values.email}`);
      expect(byEmail).toMatchObject({ status: 200, body: values });
      const byName = await reader('GET', `/api/employees/by/lastName/${department}/${values.lastName}`);
      expect(byName).toMatchObject({ status: 200, body: { items: [values] } });
      const managers = await reader('GET', `/api/employees/by/managers/${department}`);
      expect(managers).toMatchObject({ status: 200, body: { items: [] } });
      const asked = await hr('POST', `${path}/archive`);
      expect(asked).toMatchObject({ status: 202 });
      expect(await hr('GET', asked.headers.get('location') ?? '')).toMatchObject({
        status: 200,
        body: { operation: 'archive' },
      });
    }
  });

  test('can be in a department of any name', async () => {
    const { values, path } = await hire({ department: 'R&D / 100% "Ünï"?#\\ +é🙂', lastName: "O'Brien / Söhne" });
    expect((await reader('GET', path)).body).toEqual(values);
    const part = encodeURIComponent(values.department);
    expect((await reader('GET', `/api/employees/${part}`)).body).toEqual({ items: [values] });
    const byLastName = await reader('GET', `/api/employees/by/lastName/${part}/${encodeURIComponent(values.lastName)}`);
    expect(byLastName.body).toEqual({ items: [values] });
  });

  test('is created once by two concurrent requests with one email', async () => {
    const one = somebody({ department: 'Race' });
    const other = somebody({ department: 'Race2', email: one.email });
    const replies = await Promise.all([one, other].map((body) => hr('POST', '/api/employees', { body })));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409]);
  });
});

describe('many concurrent callers', () => {
  test('all succeed in changing one employee, or adding to one list', { tags: ['slow'] }, async () => {
    const { path } = await hire({ department: 'Crowd' });
    // Callers repeat a `busy` request, because this machine may be slow.
    const served = (...request: Parameters<typeof hr>) =>
      eventually(
        () => hr(...request),
        ({ status }) => status !== 503,
      );
    const patches = await Promise.all(Array.from({ length: 40 }, (_, age) => served('PATCH', path, { body: { age } })));
    expect(patches.map(({ status }) => status)).toEqual(patches.map(() => 200));
    const hires = await Promise.all(
      Array.from({ length: 40 }, () =>
        served('POST', '/api/employees', {
          body: somebody({ department: 'Crowd', lastName: 'Crowd' }),
          headers: { 'idempotency-key': randomUUID() },
        }),
      ),
    );
    expect(hires.map(({ status }) => status)).toEqual(hires.map(() => 201));
    expect((await reader('GET', '/api/employees/by/lastName/Crowd/Crowd')).body.items).toHaveLength(40);
  });
});

describe('an index', () => {
  test('returns one entity as an object and several as items', async () => {
    const { values } = await hire({ lastName: 'Indexed' });
    const { values: other } = await hire({ lastName: 'Indexed', department: 'Marketing' });
    expect((await reader('GET', `/api/employees/by/email/Sales/${values.email}`)).body).toEqual(values);
    const companyWide = await reader('GET', `/api/employees/by/emailCompanyWide/${values.email.toUpperCase()}`);
    expect(companyWide.body).toEqual(values);
    expect(companyWide.headers.get('content-location')).toBe(`/api/employees/Sales/${values.employeeId}`);
    expect((await reader('GET', '/api/employees/by/lastName/Sales/Indexed')).body).toEqual({ items: [values] });
    const all = await eventually(
      () => reader('GET', '/api/employees/by/lastNameCompanyWide/Indexed'),
      ({ body }) => body.items.length === 2,
    );
    expect(all.body.items).toEqual(expect.arrayContaining([values, other]));
    expect((await reader('GET', '/api/employees/by/lastNameCompanyWide/Nobody')).body).toEqual({ items: [] });
    expect((await reader('GET', '/api/employees/by/email/Sales/nobody@contoso.com')).status).toBe(404);
    expect((await reader('GET', '/api/employees/by/email/Sales/nobody')).status).toBe(400);
  });
});

describe('a range', () => {
  test('is bounded, projected and paged', { tags: ['slow'] }, async () => {
    const staff = [];
    for (let count = 0; count < 7; count += 1) staff.push((await hire({ department: 'Ranges' })).values);
    const ids = staff.map(({ employeeId }) => employeeId);
    const bounded = await reader('GET', `/api/employees/Ranges?from=${ids[2]}&to=${ids[4]}&select=employeeId,lastName`);
    expect(bounded.body.items).toEqual(staff.slice(2, 5).map(({ employeeId, lastName }) => ({ employeeId, lastName })));

    const read: string[] = [];
    let next = '/api/employees/Ranges?top=3';
    for (let pages = 0; next && pages < 9; pages += 1) {
      const page = await reader('GET', next);
      expect(page.body.items.length).toBeLessThanOrEqual(3);
      read.push(...page.body.items.map(({ employeeId }: { employeeId: string }) => employeeId));
      next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
    }
    expect(read).toEqual(ids);
  });

  test('rejects a forged continuation, one of another query, and unknown parameters', async () => {
    for (let count = 0; count < 2; count += 1) await hire({ department: 'Forged' });
    const { headers } = await reader('GET', '/api/employees/Forged?top=1');
    const token = /continuation=([^>&]+)/.exec(headers.get('link') ?? '')?.[1] ?? '';
    // The last character but one, because each of its bits is significant.
    const forged = token.replace(/.(?=.$)/, (last) => (last === 'A' ? 'B' : 'A'));
    expect((await reader('GET', `/api/employees/Forged?top=1&continuation=${token}`)).status).toBe(200);
    for (const path of [
      `/api/employees/Sales?top=1&continuation=${token}`,
      `/api/employees/Forged?top=1&from=000000&continuation=${token}`,
      `/api/employees/Forged?continuation=${forged}`,
      '/api/employees/Forged?continuation=x',
    ])
      expect(await reader('GET', path)).toMatchObject({ status: 400, body: { field: 'continuation' } });
    for (const [query, field] of [
      ['top=0', 'top'],
      ['top=1001', 'top'],
      ['top=x', 'top'],
      ['select=salary', 'select'],
      ['tpo=1', 'tpo'],
    ])
      expect(await reader('GET', `/api/employees/Forged?${query}`)).toMatchObject({ status: 400, body: { field } });
  });
});

describe('a caller', () => {
  test('gets 401 without a token, or with a token that was tampered with', async () => {
    const { path } = await hire();
    const nobody = await product.as(undefined)('GET', path);
    expect(nobody).toMatchObject({ status: 401, body: { type: '/api/problems#unauthenticated' } });
    expect(nobody.headers.get('www-authenticate')).toBe('Bearer');
    const token = await product.token('hr');
    const [head, payload, signature] = token.split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    for (const bad of [`${none}.${payload}.`, `${head}.${payload}.${signature?.split('').reverse().join('')}`, 'x'])
      expect((await product.as(undefined)('GET', path, { headers: { authorization: `Bearer ${bad}` } })).status).toBe(
        401,
      );
  });

  test('may read and write what its role allows', async () => {
    const { values, path } = await hire({ nationalId: '123-45-6789', birthDate: '1980-01-02' });
    const { nationalId, birthDate, ...rest } = values;
    expect((await hr('GET', path)).body).toEqual(values);
    expect((await reader('GET', path)).body).toEqual(rest);
    expect((await reader('GET', `/api/employees/by/email/Sales/${values.email}`)).body).toEqual(rest);
    expect(
      (await reader('GET', `/api/employees/Sales?from=${values.employeeId}&to=${values.employeeId}&select=birthDate`))
        .body,
    ).toEqual({ items: [{}] });
    for (const method of ['PUT', 'PATCH', 'DELETE'])
      expect((await reader(method, path, { body: {} })).status).toBe(403);
    expect((await reader('POST', '/api/employees', { body: somebody() })).status).toBe(403);
    expect((await reader('GET', '/api/operations/poison')).status).toBe(403);
    expect((await hr('GET', path)).body).toEqual(values);
  });
});

describe('a department', () => {
  test('has the name and email of its manager, and follows their changes', { tags: ['slow'] }, async () => {
    const { values: manager, path } = await hire({ department: 'Managed', firstName: 'May' });
    const nobody = await hr('POST', '/api/departments', { body: { department: 'Managed', managerId: '999999' } });
    expect(nobody).toMatchObject({ status: 400, body: { field: 'managerId' } });
    const created = await hr('POST', '/api/departments', {
      body: { department: 'Managed', managerId: manager.employeeId },
    });
    const expected = {
      department: 'Managed',
      managerId: manager.employeeId,
      managerName: `May ${manager.lastName}`,
      managerEmail: manager.email,
      employeeCount: 1,
    };
    expect(created).toMatchObject({ status: 201, body: expected });
    await hr('PATCH', path, { body: { lastName: 'Married' } });
    const read = await reader('GET', '/api/departments/Managed');
    expect(read.body).toEqual({ ...expected, managerName: 'May Married' });
    const unchanged = await hr('PUT', '/api/departments/Managed', { body: { ...read.body, description: 'd' } });
    expect(unchanged.body).toEqual({ ...read.body, description: 'd' });
    const decided = await hr('PATCH', '/api/departments/Managed', { body: { managerName: 'Somebody Else' } });
    expect(decided).toMatchObject({ status: 400, body: { field: 'managerName' } });
    await hr('DELETE', path);
    expect((await reader('GET', '/api/departments/Managed')).body).toEqual({
      department: 'Managed',
      description: 'd',
      employeeCount: 0,
    });
  });
});

describe('the delete of an employee with more reviews than a transaction has rows', () => {
  test('is accepted, tells its status, and ends', { tags: ['slow'] }, async () => {
    const { values, path, etag } = await hire({ department: 'Veterans' });
    const { department, employeeId } = values;
    const review = (_: unknown, index: number) => ({ put: { department, employeeId, year: 1900 + index, rating: 3 } });
    for (const actions of [Array.from({ length: 60 }, review), Array.from({ length: 120 }, review).slice(60)])
      expect((await hr('POST', '/api/reviews/batch', { body: { actions } })).status).toBe(200);
    // The reviews have changed its ETag.
    expect((await hr('DELETE', path, { headers: { 'if-match': etag } })).status).toBe(412);
    expect((await reader('DELETE', path)).status).toBe(403);
    expect((await hr('DELETE', `${path}?explain=true`)).status).toBe(200);
    const asked = await hr('DELETE', path);
    expect(asked).toMatchObject({ status: 202, body: { operation: 'delete', status: 'running' } });
    const location = asked.headers.get('location') ?? '';
    expect(location).toBe(`${path}/delete/${asked.body.operationId}`);
    expect((await reader('GET', location)).status).toBe(403);
    expect((await hr('GET', location.replace(employeeId, '999999'))).status).toBe(404);
    await eventually(
      () => hr('GET', location),
      ({ body }) => body.status === 'succeeded',
    );
    expect((await reader('GET', path)).status).toBe(404);
    expect((await hr('GET', `/api/reviews/${department}?top=1`)).body).toMatchObject({ items: [] });
  });
});

describe('an archive and a move', () => {
  test('remove an employee from every index and add it to the new ones', { tags: ['slow'] }, async () => {
    const { values, path } = await hire({ lastName: 'Leaver' });
    const asked = await hr('POST', `${path}/archive`);
    expect(asked).toMatchObject({ status: 202, body: { operation: 'archive', status: 'running' } });
    const location = asked.headers.get('location') ?? '';
    await eventually(
      () => hr('GET', location),
      ({ body }) => body.status === 'succeeded',
    );
    expect((await reader('GET', path)).status).toBe(404);
    expect((await reader('GET', `/api/employees/by/email/Sales/${values.email}`)).status).toBe(404);
    expect((await reader('GET', '/api/employees/by/lastName/Sales/Leaver')).body).toEqual({ items: [] });
    await eventually(
      () => reader('GET', `/api/employees/by/emailCompanyWide/${values.email}`),
      ({ status }) => status === 404,
    );
    await eventually(
      () => reader('GET', '/api/employees/by/lastNameCompanyWide/Leaver'),
      ({ body }) => body.items.length === 0,
    );
    expect((await reader('GET', path.replace('employees', 'formeremployees'))).body).toEqual(values);
    expect((await hr('POST', `${path}/archive`)).status).toBe(404);
  });

  test('keep the email taken', { tags: ['slow'] }, async () => {
    const { values, path } = await hire({ department: 'Here' });
    const asked = await hr('POST', `${path}/move`, { body: { department: 'There' } });
    const location = asked.headers.get('location') ?? '';
    await eventually(
      () => hr('GET', location),
      ({ body }) => body.status === 'succeeded',
    );
    const there = { ...values, department: 'There' };
    expect((await reader('GET', `/api/employees/There/${values.employeeId}`)).body).toEqual(there);
    expect((await reader('GET', path)).status).toBe(404);
    expect((await reader('GET', `/api/employees/by/emailCompanyWide/${values.email}`)).body).toEqual(there);
    expect((await hr('POST', '/api/employees', { body: somebody({ email: values.email }) })).status).toBe(409);
    expect(
      (await hr('POST', `/api/employees/There/${values.employeeId}/move`, { body: { department: 'There' } })).status,
    ).toBe(400);
    expect((await hr('POST', `/api/employees/There/${values.employeeId}/move`, { body: { team: 'A' } })).status).toBe(
      400,
    );
    expect((await hr('GET', location.replace('/Here/', '/There/'))).status).toBe(404);
  });
});
