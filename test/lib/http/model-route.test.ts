import { HttpRequest, InvocationContext } from '@azure/functions';
import { expect, test } from 'vitest';
import { model } from '../../fixtures/model.ts';
import { modelParts } from '../../kit/define.ts';
import { type App, httpDoor, type Route } from '../../kit/http.ts';
import { respondWith } from '../../respond-with.ts';

const described = httpDoor.describeModel(model);

test('describes every entity and archive by its own schema', () => {
  expect(modelParts.ModelDescription.parse(JSON.parse(JSON.stringify(described)))).toEqual(described);
  const archives = model.list.flatMap(({ archive }) => archive?.name ?? []);
  expect(Object.keys(described.entities).sort()).toEqual([...model.list.map(({ name }) => name), ...archives].sort());
  expect(described.entities.formeremployees).toMatchObject({ archiveOf: 'employees' });
  expect(described.entities.employees).not.toHaveProperty('archiveOf');
});

test('gives the paths of keys and indexes as the routes have them', () => {
  expect(described.entities.currencies).toMatchObject({ lookup: { index: 'inOrder', maxAge: 600 } });
  const paths = new Set(httpDoor.createRoutes(model).map(({ path }) => path));
  const parameters = (fields: readonly string[]) => fields.map((field) => `{${field}}`).join('/');
  for (const [name, { key, indexes }] of Object.entries(described.entities)) {
    expect(paths).toContain(`${name}/${parameters(key.fields)}`);
    for (const [index, { fields, ranges }] of Object.entries(indexes))
      for (const start of [fields, ...ranges.map((range) => range.fields).filter((one) => one.length < fields.length)])
        expect(paths).toContain([name, 'by', index, ...(start.length > 0 ? [parameters(start)] : [])].join('/'));
  }
});

test('describes keys, fields, indexes, files and owners', () => {
  const { employees, reviews, expenses, messagehours, logins, departments, people } = described.entities;
  expect(employees).toMatchObject({
    key: { fields: ['department', 'employeeId'], row: { template: 'empid_{employeeId}' } },
    children: ['reviews'],
    attachments: { photo: { maxBytes: 5_000_000 } },
    archive: 'formeremployees',
    movable: ['department'],
    fields: {
      age: { type: 'Int32', optional: true, schema: { type: 'integer', maximum: 150 } },
      nationalId: { encrypted: true, restricted: ['hr'] },
    },
    indexes: {
      emailCompanyWide: { of: 'one', unique: true, fields: ['email'], settle: 'inline' },
      lastName: { of: 'many', fields: ['department', 'lastName'] },
      hireDate: { ranges: [{ fields: ['department'], bounded: 'hireDate', order: 'ascending' }, expect.anything()] },
      managers: { sparse: true },
    },
    access: { own: { claim: 'email', index: 'emailCompanyWide' }, writtenByClients: false },
  });
  expect(reviews).toMatchObject({ parent: 'employees', fields: { comments: { large: true } } });
  expect(expenses).toMatchObject({
    access: { own: { through: 'employees', permissions: 'ra' }, writtenByClients: true },
    fields: { at: { optional: false, generated: true }, amount: { generated: false } },
  });
  expect(expenses?.fields.at?.schema).not.toHaveProperty('default');
  expect(messagehours?.series).toEqual({
    name: 'hour',
    first: 0,
    last: 23,
    span: { field: 'day', per: 'day' },
  });
  expect(logins?.period).toEqual({ per: 'day', field: 'at', keep: 60, archiveTo: 'blob' });
  expect(departments).toMatchObject({ maxAge: 60, counts: { employeeCount: 'employees' } });
  expect(departments?.fields.employeeCount).toMatchObject({ kept: true });
  expect(described.entities.orders?.references).toEqual({ customerId: { to: 'customers', by: 'customerId' } });
  expect(described.entities.products?.split).toEqual({ text: ['description', 'specification'] });
  expect(people?.kinds).toEqual(['employee', 'customer']);
});

test('names the field whose text names an entity: that of the declaration, or of a usual name', () => {
  const labels = Object.entries(described.entities).flatMap(([name, { label }]) => (label ? [[name, label]] : []));
  expect(Object.fromEntries(labels)).toEqual({
    currencies: 'title',
    customers: 'companyName',
    employees: 'email',
    formeremployees: 'email',
    movies: 'title',
    people: 'email',
  });
});

test('describes no container of a file, and not how the issuer verifies a claim', () => {
  const { access, attachments } = model.entities.employees;
  expect(access.own).toHaveProperty('verifiedBy');
  expect(described.entities.employees?.access.own).toEqual({ claim: 'email', index: 'emailCompanyWide' });
  expect(attachments.photo).toHaveProperty('container');
  expect(Object.keys(described.entities.employees?.attachments.photo ?? {})).toEqual(['maxBytes', 'types', 'public']);
});

test('openapi.json is built once, and has an ETag', { tags: ['slow'] }, async () => {
  const route = httpDoor.createRoutes(model).find(({ name }) => name === 'openapi') as Route;
  const ask = (headers: Record<string, string> = {}, root = '/api') =>
    respondWith(
      () => ({}) as App,
      route,
      root,
    )(
      new HttpRequest({ method: 'GET', url: `http://localhost${root}/openapi.json`, headers }),
      new InvocationContext(),
    );
  const [first, again] = [await ask(), await ask()];
  expect(again.body).toBe(first.body);
  const headers = new Headers(first.headers as Record<string, string>);
  expect(headers.get('content-type')).toBe('application/json');
  expect(JSON.parse(new TextDecoder().decode(first.body as Uint8Array))).toMatchObject({ openapi: '3.1.0' });
  const same = await ask({ 'if-none-match': headers.get('etag') ?? '' });
  expect([same.status, same.body]).toEqual([304, undefined]);
  const below = await ask({}, '/api/yard');
  expect(new TextDecoder().decode(below.body as Uint8Array)).toContain('"/api/yard/health"');
});

test('is public and cacheable, and has nothing of the deployment', async () => {
  const route = httpDoor.modelRoute({ ...model, prefix: 'secretprefix' });
  const respond = respondWith(() => ({}) as App, route);
  const ask = (headers: Record<string, string> = {}) =>
    respond(new HttpRequest({ method: 'GET', url: 'http://localhost/api/model', headers }), new InvocationContext());
  const first = await ask();
  const headers = new Headers(first.headers as Record<string, string>);
  expect([first.status, headers.get('cache-control')]).toEqual([200, 'public, max-age=300']);
  const text = new TextDecoder().decode(first.body as Uint8Array);
  expect(JSON.parse(text)).toEqual(described);
  for (const secret of ['secretprefix', 'verifiedBy', 'email_verified', 'employeesbyemail', '"photos"'])
    expect(text).not.toContain(secret);
  expect((await ask({ 'if-none-match': headers.get('etag') ?? '' })).status).toBe(304);
  expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200);
});
