import { describe, expect, test } from 'vitest';
import { withoutReferences } from '../openapi.ts';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');
const operator = product.as(['operator', 'hr']);

async function create(entity: string, body: object) {
  const reply = await hr('POST', `/api/${entity}`, { body });
  expect(reply.status).toBe(201);
  return reply.body;
}

function nextOf({ headers }: { headers: Headers }): string {
  return /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1] ?? '';
}

describe('a log tail', () => {
  test('returns the newest first, in one transaction, and continues where it stopped', { tags: ['slow'] }, async () => {
    const instants = Array.from({ length: 25 }, (_, index) => new Date(Date.UTC(2026, 10, 1 + index, 8)).toISOString());
    for (const at of [...instants].sort(() => Math.random() - 0.5))
      await create('expenses', { employeeId: '000001', at, amount: 10.5, category: 'Meals' });
    // A row with the same value, and a row of another owner.
    await create('expenses', { employeeId: '000001', at: instants.at(-1), amount: 3, category: 'Meals' });
    await create('expenses', { employeeId: '000002', amount: 1, category: 'Meals' });
    const newest = [instants.at(-1), ...[...instants].reverse()];
    // The first page with a link creates or reads the signing secret, once per process.
    await hr('GET', '/api/expenses/000001?top=1');
    const first = await hr('GET', '/api/expenses/000001?top=10');
    expect(first.body.items.map(({ at }: { at: string }) => at)).toEqual(newest.slice(0, 10));
    expect(first.headers.get('server-timing')).toContain('"1 transaction"');
    const second = await hr('GET', nextOf(first));
    expect(second.body.items.map(({ at }: { at: string }) => at)).toEqual(newest.slice(10, 20));
    const week = await hr('GET', '/api/expenses/000001?from=2026-11-03&to=2026-11-05');
    expect(week.body.items.map(({ at }: { at: string }) => at.slice(0, 10))).toEqual([
      '2026-11-05',
      '2026-11-04',
      '2026-11-03',
    ]);
    const sinceMonth = await hr('GET', '/api/expenses/000001?from=2026-11');
    expect(sinceMonth.body.items).toHaveLength(26);
    expect((await hr('GET', '/api/expenses/000001?to=2026-10')).body.items).toEqual([]);
    expect(await hr('GET', '/api/expenses/000001?from=lately')).toMatchObject({
      status: 400,
      body: { detail: '"from" must be an instant, a day, a month or a year, in UTC.' },
    });
  });

  test('stores each claim under its own key', { tags: ['slow'] }, async () => {
    const created = await hr('POST', '/api/expenses', { body: { employeeId: '000003', amount: 7, category: 'Hotel' } });
    const read = await hr('GET', created.headers.get('location') ?? '');
    expect(read).toMatchObject({ status: 200, body: created.body });
  });
});

describe('children', () => {
  test('are included in an employee for callers who may read them', { tags: ['slow'] }, async () => {
    const one = await create('employees', somebody({ department: 'Included' }));
    const path = `/api/employees/Included/${one.employeeId}`;
    const review = await create('reviews', {
      department: 'Included',
      employeeId: one.employeeId,
      year: 2012,
      rating: 4,
    });
    const read = await hr('GET', `${path}?include=reviews`);
    expect(read.body).toEqual({ ...one, reviews: [review] });
    expect(read.headers.get('server-timing')).toContain('"1 transaction"');
    expect((await hr('GET', path)).body).toEqual(one);
    expect((await hr('GET', `/api/reviews/Included/${one.employeeId}/2012`)).body).toEqual(review);
    expect((await reader('GET', `${path}?include=reviews`)).status).toBe(403);
    const years = async (query: string) => {
      const { body, headers } = await hr('GET', `${path}?include=reviews&${query}`);
      expect(headers.get('server-timing')).toContain('"1 transaction"');
      expect({ ...body, reviews: undefined }).toEqual({ ...one, reviews: undefined });
      return body.reviews.map(({ year }: { year: number }) => year);
    };
    await create('reviews', { department: 'Included', employeeId: one.employeeId, year: 2013, rating: 2 });
    expect(await years('reviews.rating=ge:4')).toEqual([2012]);
    expect(await years('reviews.year=gt:2000&reviews.rating=lt:4&select=reviews.year')).toEqual([2013]);
    expect(await years('reviews.year=3000')).toEqual([]);
    for (const query of ['reviews.rating=ge:4', 'include=reviews&reviews.comments=x', 'include=reviews&rating=4'])
      expect((await hr('GET', `${path}?${query}`)).status, query).toBe(400);
    expect(await hr('GET', `${path}?include=salaries`)).toMatchObject({ status: 400, body: { field: 'include' } });
    expect((await hr('GET', '/api/employees/Included')).body.items).toEqual([one]);
  });
});

describe('door events', () => {
  test('are read by the hour within the partition of one employee', { tags: ['slow'] }, async () => {
    for (const hour of ['2026112007', '2026112008', '2026112008', '2026112009', '2026112108'])
      await create('doorevents', { department: 'Sales', employeeId: '000001', hour, door: 'Main' });
    const read = async (query: string) =>
      (await hr('GET', `/api/doorevents/Sales/000001?${query}`)).body.items.map(({ hour }: { hour: string }) => hour);
    expect(await read('from=2026112008&to=2026112008')).toEqual(['2026112008', '2026112008']);
    expect(await read('from=20261120&to=20261120')).toHaveLength(4);
    expect(
      await hr('POST', '/api/doorevents', {
        body: { department: 'Sales', employeeId: '000001', hour: '2026112024', door: 'Main' },
      }),
    ).toMatchObject({ status: 400, body: { field: 'hour' } });
  });
});

describe('a filter', () => {
  test('compares any property of a partition, of any type', { tags: ['slow'] }, async () => {
    const department = "Filter's";
    const one = await create(
      'employees',
      somebody({ department, jobTitle: "O'Clerk", age: 30, vacationHours: 8, phone: '1' }),
    );
    const other = await create(
      'employees',
      somebody({ department, jobTitle: 'Boss', age: 31, vacationHours: 8.5, phone: '1' }),
    );
    const find = async (query: string) =>
      (await hr('GET', `/api/employees/${encodeURIComponent(department)}?${query}`)).body.items;
    expect(await find(`jobTitle=${encodeURIComponent("O'Clerk")}`)).toEqual([one]);
    expect(await find('age=31')).toEqual([other]);
    expect(await find('vacationHours=8')).toEqual([one]);
    expect(await find('vacationHours=8.5')).toEqual([other]);
    expect(await find('phone=1')).toEqual([one, other]);
    expect(await find('phone=1&age=30')).toEqual([one]);
    expect(await find('phone=2')).toEqual([]);
    expect(await hr('GET', `/api/employees/${department}?age=old`)).toMatchObject({
      status: 400,
      body: { field: 'age' },
    });
    await create('logins', { employeeId: '000009', succeeded: false });
    await create('logins', { employeeId: '000009', succeeded: true });
    expect((await hr('GET', '/api/logins/000009?succeeded=false')).body.items).toHaveLength(1);
  });

  test('compares with operators, over ranges, indexes and scans', { tags: ['slow'] }, async () => {
    const department = 'Operators';
    const people = [];
    for (const [age, jobTitle, hireDate] of [
      [29, 'Clerk', '2019-12-31'],
      [30, 'ge:x', '2020-01-01'],
      [39, 'Clerk, senior', '2020-06-01'],
      [40, undefined, '2021-01-01'],
    ] as const)
      people.push(await create('employees', somebody({ department, age, jobTitle, hireDate, lastName: 'Berg' })));
    const find = async (query: string, path = `/api/employees/${department}`, as = hr) => {
      const { status, body } = await as('GET', `${path}?${query}`);
      expect(status, JSON.stringify(body)).toBe(200);
      return body.items.map(({ age }: { age: number }) => age);
    };
    expect(await find('age=ge:30&age=lt:40')).toEqual([30, 39]);
    expect(await find('age=ge:30&age=lt:40&select=age,lastName')).toEqual([30, 39]);
    expect(await find('age=in:29,40')).toEqual([29, 40]);
    expect(await find('jobTitle=eq:ge:x')).toEqual([30]);
    expect(await find('jobTitle=ne:Clerk')).toEqual([30, 39]);
    expect(await find(`jobTitle=${encodeURIComponent('in:Clerk,Clerk\\, senior')}`)).toEqual([29, 39]);
    expect(await find('hireDate=ge:2020&hireDate=lt:2021')).toEqual([30, 39]);
    for (const index of [`hireDate/${department}`, `lastName/${department}/Berg`, 'lastNameCompanyWide/Berg'])
      expect(await find('age=gt:30&jobTitle=ne:x', `/api/employees/by/${index}`), index).toEqual([39]);
    expect(await find(`age=le:30&department=${department}`, '/api/operations/scan/employees', operator)).toEqual([
      29, 30,
    ]);
    const page = await hr('GET', `/api/employees/${department}?age=ge:30&age=lt:40&top=1`);
    expect((await hr('GET', nextOf(page))).body.items).toEqual([people[2]]);
    expect((await hr('GET', nextOf(page).replace('lt%3A40', 'lt%3A41'))).status).toBe(400);
    for (const path of [`by/lastName/${department}/Berg`, department]) {
      expect(await hr('GET', `/api/employees/${path}?nationalId=1`)).toMatchObject({
        status: 400,
        body: { field: 'nationalId', detail: expect.stringContaining('is encrypted') },
      });
      expect((await reader('GET', `/api/employees/${path}?birthDate=ge:1990`)).status).toBe(403);
      expect((await hr('GET', `/api/employees/${path}?photo=1`)).status).toBe(400);
    }
  });

  test('is described in OpenAPI with the type of its field', { tags: ['slow'] }, async () => {
    const { paths } = withoutReferences((await hr('GET', '/api/openapi.json')).body);
    const parameters = (path: string) =>
      Object.fromEntries(paths[path]?.get?.parameters.map((one: { name: string }) => [one.name, one]) ?? []);
    const { age, lastName, nationalId } = parameters('/api/employees/{department}');
    // A value or a comparison, both of which are texts: of a number with the pattern of one.
    const texts = { type: 'array', items: { type: 'string' } };
    expect(lastName?.schema).toMatchObject(texts);
    expect(age?.schema).toMatchObject(texts);
    const isAge = new RegExp(age?.schema.items.pattern);
    expect(['30', 'ge:30', 'in:1,2', 'x', 'ge:x'].map((text) => isAge.test(text))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(nationalId).toBeUndefined();
    expect(parameters('/api/employees/{department}/{employeeId}')['reviews.rating']).toBeDefined();
    // A default is not a filter.
    expect(JSON.stringify(parameters('/api/logins/{employeeId}'))).not.toContain('"default"');
  });

  test.each([
    ['logins/000009', 'succeeded', ['perhaps', 'TRUE', '', '1']],
    ['employees/Sales', 'age', ['', '+', '0x10', '010', '+1', '1e1000', '1.5']],
    ['employees/Sales', 'vacationHours', ['', ' ', 'Infinity', '.5', '5.']],
  ])('of %s is rejected when %s is not valid in JSON', async (path, field, texts) => {
    for (const text of texts) {
      const refused = await hr('GET', `/api/${path}?${field}=${encodeURIComponent(text)}`);
      expect(refused, text).toMatchObject({ status: 400, body: { field } });
    }
  });

  test('accepts a number in any form of JSON', async () => {
    const one = await create('employees', somebody({ department: 'Numbers', vacationHours: 250 }));
    for (const text of ['250', '250.0', '2.5e2', '25E+1'])
      expect((await hr('GET', `/api/employees/Numbers?vacationHours=${encodeURIComponent(text)}`)).body.items).toEqual([
        one,
      ]);
  });

  test('by a field that the caller may not read is rejected', async () => {
    const refused = await reader('GET', '/api/employees/Sales?birthDate=1');
    expect(refused).toMatchObject({ status: 403, body: { field: 'birthDate' } });
  });

  test('is bound to its continuation', async () => {
    for (let count = 0; count < 3; count += 1) await create('employees', somebody({ department: 'Paged', phone: '5' }));
    const page = await hr('GET', '/api/employees/Paged?phone=5&top=2');
    expect((await hr('GET', nextOf(page))).body.items).toHaveLength(1);
    expect((await hr('GET', nextOf(page).replace('phone=5', 'phone=6'))).status).toBe(400);
  });
});

describe('a sparse index', () => {
  test('lists only entities that meet its condition, as they change', { tags: ['slow'] }, async () => {
    const boss = await create('employees', somebody({ department: 'Sparse', jobTitle: 'Sales Manager' }));
    const clerk = await create('employees', somebody({ department: 'Sparse', jobTitle: 'Management Trainee' }));
    const nobody = somebody({ department: 'Sparse' });
    await create('employees', nobody);
    const managers = async () => (await reader('GET', '/api/employees/by/managers/Sparse')).body.items;
    expect(await managers()).toEqual([boss]);
    const promoted = await hr('PATCH', `/api/employees/Sparse/${clerk.employeeId}`, { body: { jobTitle: 'Manager' } });
    await hr('PATCH', `/api/employees/Sparse/${boss.employeeId}`, { body: { jobTitle: 'Pensioner' } });
    expect(await managers()).toEqual([promoted.body]);
  });
});

describe('a table scan', () => {
  test('is for operators only, and pages through all entities of one kind', { tags: ['slow'] }, async () => {
    for (let count = 0; count < 5; count += 1) await create('employees', somebody({ department: `Scan${count}` }));
    await create('departments', { department: 'Scan0' });
    for (const one of [hr, product.as('operator')])
      expect((await one('GET', '/api/operations/scan/employees')).status).toBe(403);
    expect((await hr('GET', '/api/employees')).status).toBe(405);
    const seen: { department: string; employeeId: string }[] = [];
    let pages = 0;
    for (let next = '/api/operations/scan/employees?top=7'; next && pages < 100; pages += 1) {
      const page = await operator('GET', next);
      expect(page.status).toBe(200);
      seen.push(...page.body.items);
      next = nextOf(page);
    }
    const keys = seen.map(({ department, employeeId }) => `${department}/${employeeId}`);
    expect(new Set(keys).size).toBe(keys.length);
    for (let count = 0; count < 5; count += 1) expect(keys.some((key) => key.startsWith(`Scan${count}/`))).toBe(true);
    expect((await operator('GET', '/api/operations/scan/departments')).body.items).toEqual([
      { department: 'Scan0', employeeCount: 1 },
    ]);
    expect((await operator('GET', '/api/operations/scan/none')).status).toBe(404);
  });

  test('fills a page with entities, although their partition has copies of them', { tags: ['slow'] }, async () => {
    const department = '0 First';
    for (let count = 0; count < 10; count += 1) await create('employees', somebody({ department }));
    // The first page with a link creates or reads the signing secret, once per process.
    await operator('GET', '/api/operations/scan/employees?top=1');
    const { body, headers } = await operator('GET', '/api/operations/scan/employees?top=8');
    expect(body.items.map((one: { department: string }) => one.department)).toEqual(Array(8).fill(department));
    expect(headers.get('server-timing')).toContain('"1 transaction"');
  });
});

describe('a data series over HTTP', () => {
  test('is set, incremented and charted, and rejects unknown slots', async () => {
    const path = '/api/messagehours/000001/2026-11-20';
    expect((await hr('GET', path)).status).toBe(404);
    expect((await hr('PUT', `${path}/9`, { body: { count: 4 } })).status).toBe(204);
    expect((await hr('PATCH', path, { body: { counts: { 0: 1, 23: 2 } } })).status).toBe(204);
    expect(await hr('POST', `${path}/9/increments`, { body: { by: 3 } })).toMatchObject({
      status: 200,
      body: { count: 7 },
    });
    const chart = await hr('GET', path);
    expect(chart.body).toEqual({
      employeeId: '000001',
      day: '2026-11-20',
      counts: [1, 0, 0, 0, 0, 0, 0, 0, 0, 7, ...Array(13).fill(0), 2],
    });
    expect(chart.headers.get('server-timing')).toContain('"1 transaction"');
    for (const [where, body] of [
      ['24', { count: 1 }],
      ['x', { count: 1 }],
      ['1', { count: -1 }],
      ['1', { count: 1.5 }],
      ['1', {}],
    ] as const)
      expect((await hr('PUT', `${path}/${where}`, { body })).status).toBe(400);
    expect((await hr('PUT', '/api/messagehours/000001/2026-02-30/1', { body: { count: 1 } })).status).toBe(400);
    expect((await reader('GET', path)).status).toBe(403);
  });
});

test('departments may be cached for a while, employees are revalidated', async () => {
  await create('departments', { department: 'Cached' });
  const { values, path } = {
    values: await create('employees', somebody({ department: 'Cached' })),
    path: '/api/employees/Cached',
  };
  expect((await reader('GET', '/api/departments/Cached')).headers.get('cache-control')).toBe('private, max-age=60');
  expect((await reader('GET', `${path}/${values.employeeId}`)).headers.get('cache-control')).toBe('private, no-cache');
});
