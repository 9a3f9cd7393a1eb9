import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES } from '../fixtures/samples.ts';
import { type JsonSchema, type OpenApi, withoutReferences } from '../openapi.ts';
import { eventually, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');

/** The documents that describe the API, as they are on the wire: fetch hides the encoding. */

async function ask(path: string, headers: Record<string, string> = {}) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(new URL(path, product.url), { headers }, resolve).on('error', reject);
  });
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
}

const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync };

test.each(['/api/openapi.json', '/api/openapi.json?tag=employees', '/api/model'])(
  'compresses %s for clients that accept it, under an ETag for each encoding',
  { tags: ['slow'] },
  async (path) => {
    const plain = await ask(path);
    expect(plain.headers).toMatchObject({ vary: 'Accept-Encoding, Origin', 'content-type': 'application/json' });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    for (const [encoding, decode] of Object.entries(DECODERS)) {
      const accepting = { 'accept-encoding': encoding };
      const { headers, bytes } = await ask(path, accepting);
      expect(headers).toMatchObject({ 'content-encoding': encoding, vary: 'Accept-Encoding, Origin' });
      expect(decode(bytes)).toEqual(plain.bytes);
      expect(bytes.length).toBeLessThan(plain.bytes.length / 4);
      expect(headers.etag).not.toBe(plain.headers.etag);
      expect(await ask(path, { ...accepting, 'if-none-match': String(headers.etag) })).toMatchObject({ status: 304 });
      expect(await ask(path, { 'if-none-match': String(headers.etag) })).toMatchObject({ status: 200 });
    }
    const both = await ask(path, { 'accept-encoding': 'gzip, deflate, br' });
    expect(both.headers['content-encoding']).toBe('br');
    const refused = await ask(path, { 'accept-encoding': 'br;q=0, gzip;q=0' });
    expect(refused.bytes).toEqual(plain.bytes);
  },
);

test('compresses the files of the console', async () => {
  const { headers } = await ask('/docs/swagger-ui-bundle.js', { 'accept-encoding': 'gzip, br' });
  expect(headers).toMatchObject({ 'content-encoding': 'br', vary: 'Accept-Encoding, Origin' });
});

test('describes the operations of one tag', { tags: ['slow'] }, async () => {
  const operationsOf = async (path: string) => {
    const { paths } = JSON.parse(String((await ask(path)).bytes));
    return Object.values<Record<string, { tags?: string[] }>>(paths).flatMap((methods) => Object.values(methods));
  };
  const whole = await operationsOf('/api/openapi.json');
  const ofEmployees = whole.filter(({ tags }) => tags?.includes('employees'));
  expect(ofEmployees.length).toBeGreaterThan(10);
  const part = await operationsOf('/api/openapi.json?tag=employees');
  expect(part.filter(({ tags }) => tags)).toHaveLength(ofEmployees.length);
  const unknown = await product.as(undefined)('GET', '/api/openapi.json?tag=people,employees');
  expect(unknown).toMatchObject({
    status: 400,
    body: { field: 'tag', accepted: expect.stringMatching(/employees.*operations/) },
  });
});

describe('a body is accepted exactly if the description has it', () => {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addFormat('idn-email', true);
  let paths: OpenApi['paths'];
  beforeAll(async () => {
    paths = withoutReferences<OpenApi>((await product.as(undefined)('GET', '/api/openapi.json')).body).paths;
  });
  const isDescribed = (path: string, method: string, body: unknown) => {
    const schema: JsonSchema | undefined = paths[path]?.[method]?.requestBody?.content['application/json']?.schema;
    if (!schema) throw new Error(path);
    return ajv.validate(schema, body);
  };

  test('as an action of a batch', { tags: ['slow'] }, async () => {
    const path = '/api/employees/batch';
    const { department, employeeId, ...others } = somebody();
    const whole = { department, employeeId, ...others };
    const key = { department, employeeId };
    const values = { create: whole, put: whole, patch: { ...key, phone: null }, delete: key, ifMatch: '*' };
    const fields = Object.entries(values);
    const combinations = Array.from({ length: 2 ** fields.length }, (_, bits) =>
      Object.fromEntries(fields.filter((_, index) => bits & (1 << index))),
    );
    const actions: unknown[] = [
      ...combinations,
      { patch: { phone: '1' } },
      { patch: { ...key, phone: 1 } },
      { patch: { ...key, lastName: null } },
      { put: key },
      { create: { ...whole, height: 1 } },
      { delete: { department } },
      { delete: whole },
      { put: whole, ifMatch: null },
      { put: whole, unknown: 1 },
    ];
    const described = actions.map((action) => isDescribed(path, 'post', { actions: [action] }));
    const accepted: boolean[] = [];
    for (const action of actions) {
      // A patch of an entity that exists, so that the engine validates the fields. It is busy while a delete releases its email.
      const put = () => hr('POST', path, { body: { actions: [{ put: whole }] } });
      await eventually(put, ({ body: { results } }) => results[0].status !== 503);
      const { status, body } = await hr('POST', path, { body: { actions: [action] } });
      accepted.push(status === 200 && body.results[0].status !== 400);
    }
    const named = (all: readonly boolean[]) => all.map((one, index) => [one, JSON.stringify(actions[index])]);
    expect(named(accepted)).toEqual(named(described));
    // Create, and put, patch and delete with and without ifMatch; a delete with other fields beside the key.
    expect(accepted.filter(Boolean)).toHaveLength(8);
  });

  test('as a patch in a batch of an entity whose key has derived fields', async () => {
    const { status, body } = await hr('POST', '/api/movies', { body: SAMPLES.movies?.(1) });
    expect(status).toBe(201);
    const { genre, title, year, filmId, ...others } = body;
    const key = { genre, title, year, filmId };
    const patches = [key, { ...key, cast: others.cast }, others, { ...key, height: 1 }];
    const described = patches.map((patch) => isDescribed('/api/movies/batch', 'post', { actions: [{ patch }] }));
    const { results } = (
      await hr('POST', '/api/movies/batch', { body: { actions: patches.map((patch) => ({ patch })) } })
    ).body;
    expect(results.map((result: { status: number }) => result.status !== 400)).toEqual(described);
    expect(described).toEqual([true, true, false, false]);
  });

  test.each([
    ['employees', somebody()],
    ['departments', { department: 'Null', description: 'x' }],
    [
      'people',
      { kind: 'customer', country: 'UK', personId: 'c-000001', firstName: 'A', lastName: 'B', companyName: 'C' },
    ],
  ])('as a new entity of %s with null for a field, which means none', async (name, entity) => {
    const path = `/api/${name}`;
    const schema = Object(paths[path]?.post?.requestBody?.content['application/json']?.schema);
    const fields = Object.keys(schema.properties).filter((field) =>
      isDescribed(path, 'post', { ...entity, [field]: null }),
    );
    const accepted: string[] = [];
    for (const field of Object.keys(schema.properties)) {
      const { status, body, headers } = await hr('POST', path, { body: { ...entity, [field]: null } });
      if (status !== 201) continue;
      expect(body[field] ?? undefined, field).toBe(undefined);
      accepted.push(field);
      await eventually(
        () => hr('DELETE', String(headers.get('location'))),
        (reply) => reply.status === 204,
      );
    }
    expect(accepted).toEqual(fields);
    expect(accepted.length).toBeGreaterThan(0);
  });

  test('as a new entity with null in a batch and a transaction, and what replaces one without', async () => {
    const { department, employeeId, ...others } = somebody();
    const whole = { department, employeeId, ...others, phone: null };
    expect(isDescribed('/api/employees/batch', 'post', { actions: [{ create: whole }] })).toBe(true);
    const created = await hr('POST', '/api/employees/batch', { body: { actions: [{ create: whole }] } });
    expect(created.body.results[0].status).toBe(201);
    const path = `/api/employees/${department}/${employeeId}`;
    const other = { ...whole, ...somebody() };
    const body = { actions: [{ employees: { create: other } }] };
    expect(await hr('POST', '/api/transact', { body })).toMatchObject({ status: 200 });
    // In a response, null stands for a value that cannot be read.
    expect(isDescribed('/api/employees/{department}/{employeeId}', 'put', { ...others, phone: null })).toBe(false);
    expect((await hr('PUT', path, { body: { ...others, phone: null } })).status).toBe(400);
    expect(isDescribed('/api/employees/batch', 'post', { actions: [{ put: whole }] })).toBe(false);
    const put = await hr('POST', '/api/employees/batch', { body: { actions: [{ put: whole }] } });
    expect(put.body.results[0].status).toBe(400);
    const change = { actions: [{ employees: { put: whole } }] };
    expect((await hr('POST', '/api/transact', { body: change })).status).toBe(400);
  });

  test.each([
    ['employees', '/api/employees/{department}/{employeeId}', somebody()],
    ['departments', '/api/departments/{department}', { department: 'Described', description: 'x' }],
    ['logins', '/api/logins/{employeeId}/{at}/{loginId}', { employeeId: '000123', succeeded: true }],
  ])('as a merge patch of %s that removes a field', async (name, template, entity) => {
    const { status, headers } = await hr('POST', `/api/${name}`, { body: entity });
    expect(status).toBe(201);
    const location = String(headers.get('location'));
    const schema = Object(paths[template]?.patch?.requestBody?.content['application/json']?.schema);
    const fields = Object.keys(schema.properties);
    const accepted: string[] = [];
    for (const field of fields)
      if ((await hr('PATCH', location, { body: { [field]: null } })).status === 200) accepted.push(field);
    expect(fields.filter((field) => isDescribed(template, 'patch', { [field]: null }))).toEqual(accepted);
    if (name === 'employees') expect(accepted).toEqual(expect.arrayContaining(['phone', 'age', 'hireDate']));
  });
});
