// @module-tag long

import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../../lib/define.ts';
import { describeRoutes } from '../../../lib/http/openapi.ts';
import { model as packs } from '../../../model/model.ts';
import { model } from '../../fixtures/model.ts';
import { defineCodec, type Entity } from '../../kit/define.ts';
import { httpDoor } from '../../kit/http.ts';
import {
  type Exchange,
  type JsonSchema,
  type OpenApi,
  type Operation,
  openapiChecker,
  withoutReferences,
} from '../../openapi.ts';

const openapi = JSON.parse(JSON.stringify(describeRoutes(httpDoor.createRoutes(model))));
const { paths }: OpenApi = withoutReferences(openapi);
const operations = Object.values(paths).flatMap((path) => Object.values(path));

function taking(header: string): string[] {
  return operations
    .filter(({ parameters }) => parameters.some(({ name }) => name === header))
    .map(({ operationId }) => operationId)
    .filter((name) => /^(employees|messagehours|operations)-/.test(name))
    .sort();
}

test('describes conditions for the operations that support them, and for no others', () => {
  const heeding = [
    ...['delete', 'file-photo-delete', 'file-photo-put', 'patch', 'replace'].map((verb) => `employees-${verb}`),
    ...['delete', 'patch', 'put-hour'].map((verb) => `messagehours-${verb}`),
  ];
  const reading = [
    ...['employees-get', 'employees-file-photo-get', 'messagehours-get'],
    'operations-file-formeremployees-photo-get',
  ];
  expect(taking('If-Match')).toEqual(heeding);
  expect(taking('If-None-Match')).toEqual([...heeding, ...reading].sort());
});

test('describes no operation that no role may call, as one without security needs no token', () => {
  const access = { read: ['reader'], write: { create: ['reader'] } };
  const things = defineEntity('things', {
    schema: z.object({ thingId: z.string() }),
    table: 'things',
    key: { partition: '{thingId}', row: 'thing' },
    access,
  });
  const described = describeRoutes(
    httpDoor.createRoutes(defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [things] })),
  );
  expect(Object.keys(described.paths['/api/things/{thingId}'] ?? {})).toEqual(['parameters', 'get', 'put']);
});

function patternsOf(described: object): Set<string> {
  const patterns = new Set<string>();
  JSON.stringify(described, (name, value: unknown) => {
    if (name === 'pattern' && typeof value === 'string') patterns.add(value);
    return value;
  });
  return patterns;
}

test.each([
  ['of the tests', model, 4],
  ['that is deployed', packs, 0],
] as const)(
  'has only patterns that clients can compile with the flag u, in the model %s',
  { tags: ['slow'] },
  (_, { list, ...rest }, least) => {
    const patterns = patternsOf(describeRoutes(httpDoor.createRoutes({ list, ...rest })));
    expect(patterns.size).toBeGreaterThanOrEqual(least);
    for (const pattern of patterns) expect(() => new RegExp(pattern, 'u'), pattern).not.toThrow();
  },
);

test('describes every format of zod by patterns that clients can compile with the flag u', () => {
  const { date, time, datetime, duration } = z.iso;
  const formats = [
    ...[date(), time(), time({ precision: 0 }), datetime({ local: true, offset: true }), duration()],
    ...[z.email(), z.uuid(), z.url(), z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.base64(), z.base64url(), z.hex()],
    ...[z.emoji(), z.nanoid(), z.cuid2(), z.ulid(), z.ksuid(), z.e164(), z.hostname(), z.mac(), z.string().lowercase()],
  ];
  const fields = formats.map((format, index) => [`field${index}`, format]);
  const access = { read: ['operator'], write: ['operator'] };
  const schema = z.object({ thingId: z.string(), at: time(), ...Object.fromEntries(fields) });
  const key = { partition: '{thingId}', row: '{at}' } as const;
  const things = defineEntity('things', { schema, table: 'things', key, access });
  const model = defineModel({ roles: ['operator'], operatorRole: 'operator', entities: [things] });
  const patterns = patternsOf(describeRoutes(httpDoor.createRoutes(model)));
  expect(patterns.size).toBeGreaterThan(10);
  for (const pattern of patterns) expect(() => new RegExp(pattern, 'u'), pattern).not.toThrow();
});

test('has each parameter and response once, and one type for each entity under its name', () => {
  const { schemas, parameters, responses } = openapi.components;
  for (const section of [parameters, responses]) {
    const texts = Object.values<object>(section).map((part) => JSON.stringify({ ...part, examples: undefined }));
    expect(new Set(texts).size).toBe(texts.length);
  }
  const { get, put, parameters: ofPath } = openapi.paths['/api/departments/{department}'];
  const described = { $ref: '#/components/schemas/Departments' };
  expect(get.responses[200].content['application/json'].schema).toEqual(described);
  expect(put.responses[200].$ref).toMatch(/^#\/components\/responses\/Departments/);
  expect(put.responses[201].$ref).toMatch(/^#\/components\/responses\/Departments/);
  expect(JSON.stringify(responses)).toContain(JSON.stringify({ schema: described }));
  expect(schemas.Departments.properties).toHaveProperty('department');
  // A response with selected fields has the same type.
  expect(schemas.Departments).not.toHaveProperty('required');
  expect(put.requestBody.content['application/json'].schema.$ref).toBe('#/components/schemas/DepartmentsReplaceBody');
  expect(get.tags).toEqual(['departments']);
  const named = (name: string) => ({ $ref: `#/components/parameters/${name}` });
  expect(ofPath).toEqual(['department', 'explain', 'If-None-Match'].map(named));
  expect(put.parameters).toEqual([named('If-Match')]);
});

test.each([
  ['of the tests', model],
  ['that is deployed', packs],
] as const)(
  'has types that generators of clients know, in the model %s',
  { tags: ['slow'] },
  (_, { list, ...rest }) => {
    const described = JSON.parse(JSON.stringify(describeRoutes(httpDoor.createRoutes({ list, ...rest }))));
    const unknown: string[] = [];
    const isSchemaOfComponent = (path: string) => /^\/components\/schemas\/\w+$/.test(path);
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const { properties, oneOf, anyOf, allOf }: JsonSchema = Object(value);
      const isRule = /\/(if|else|examples)(\/|$)/.test(path) || path.endsWith('/properties');
      if (!isRule && typeof properties === 'object' && !isSchemaOfComponent(path)) unknown.push(`${path}: no name`);
      // Null is the only alternative that they know.
      const isNullable = Array.isArray(oneOf) && oneOf.length === 2 && '$ref' in oneOf[0] && oneOf[1].type === 'null';
      if (!isRule && (anyOf || allOf || (oneOf && !isNullable))) unknown.push(`${path}: a union`);
      for (const [name, part] of Object.entries(value)) walk(part, `${path}/${name}`);
    };
    walk(described, '');
    expect(unknown).toEqual([]);

    const { paths: expanded } = withoutReferences<OpenApi>(described);
    const successes = new Map(
      httpDoor.createRoutes({ list, ...rest }).map((route) => [route.ofAll?.name ?? route.name, route.success.status]),
    );
    for (const { operationId, responses } of Object.values(expanded).flatMap((methods) => Object.values(methods))) {
      const bodies = Object.entries(responses).filter(([status]) => status.startsWith('2'));
      const types = new Set(bodies.flatMap(([, { content }]) => (content ? [JSON.stringify(content)] : [])));
      expect(types.size, operationId).toBeLessThan(2);
      // A second success with a body makes an error of the first one, or the other way round.
      const others = bodies.filter(([status, { content }]) => content && !['201', '206'].includes(status));
      for (const [status] of others) expect(Number(status), operationId).toBe(successes.get(operationId));
      const hasBytes = [...types].some((content) => content.includes('"binary"'));
      if (hasBytes) expect(responses, operationId).not.toHaveProperty('304');
    }
  },
);

test('describes numbers and Booleans of a query as such', () => {
  const parameters = operations.flatMap((operation) => operation.parameters).filter((one) => one.in === 'query');
  const schemasOf = (asked: string) => parameters.filter(({ name }) => name === asked).map(({ schema }) => schema);
  expect(new Set(schemasOf('top').map((schema) => JSON.stringify(schema)))).toEqual(
    new Set(['{"type":"integer","minimum":1,"maximum":1000}']),
  );
  for (const name of ['all', 'repair', 'explain'])
    expect(new Set(schemasOf(name).map(({ type }) => type)), name).toEqual(new Set(['boolean']));
});

test('describes the same operation of several entities once, with the entities as a parameter', () => {
  const { get, post } = paths['/api/operations/verify/{entity}'] ?? {};
  expect([get?.operationId, post?.operationId]).toEqual(['operations-verify', 'operations-verify-page']);
  const { enum: entities } = Object(get?.parameters.find(({ name }) => name === 'entity')?.schema);
  expect(entities).toEqual(expect.arrayContaining(['departments', 'employees', 'orders']));
  expect(entities).not.toContain('logins');
  expect(openapi.paths['/api/operations/verify/{entity}'].get.tags).toEqual(['operations']);
  expect(Object.keys(paths).filter((path) => path.startsWith('/api/operations/verify/'))).toHaveLength(1);
});

test.each(['clean', 'r', 'verify', 'page'])(
  'describes the operations of an entity named %s as those of others',
  (name) => {
    const define = (name: string) =>
      defineEntity(name, {
        schema: z.object({ id: z.string(), secret: z.string().optional() }),
        table: `${name}table`,
        key: { partition: '{id}', row: name },
        encrypted: ['secret'],
        access: { read: ['operator'], write: ['operator'], restricted: { secret: ['operator'] } },
      });
    const describeAll = (...names: string[]) => {
      const entities = names.map(define);
      return describeRoutes(
        httpDoor.createRoutes(defineModel({ roles: ['operator'], operatorRole: 'operator', entities })),
      ).paths;
    };
    const idsOf = (described: object) =>
      Object.entries<Record<string, { readonly operationId?: string }>>({ ...described })
        .filter(([path]) => path.startsWith('/api/operations/'))
        .map(([path, methods]) => [path, ...Object.values(methods).map(({ operationId }) => operationId)])
        .filter(([path]) => !path?.startsWith('/api/operations/scan/'));
    expect(idsOf(describeAll(name, 'things'))).toEqual(idsOf(describeAll('things')));
    expect(idsOf(describeAll('things', name))).toEqual(idsOf(describeAll('things')));
  },
);

test('describes the roles of an operation, or those that most operations accept', () => {
  const usual = openapi.security;
  expect(usual.length).toBeGreaterThan(0);
  const all = Object.values<object>(openapi.paths).flatMap((methods) => Object.values(methods));
  expect(all.filter(({ security }) => JSON.stringify(security) === JSON.stringify(usual))).toEqual([]);
  const roles = (path: string, method: string) => paths[path]?.[method]?.security.flatMap(({ token }) => token);
  expect(roles('/api/employees/{department}/{employeeId}', 'get')).toEqual(['reader', 'hr']);
  expect(roles('/api/employees/{department}/{employeeId}', 'put')).toEqual(['hr']);
  expect(roles('/api/health', 'get')).toEqual([]);
});

describe('examples', () => {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addFormat('idn-email', true);

  test.each([
    ['of the tests', model, 76],
    ['that is deployed', packs, 0],
  ] as const)(
    'of every schema are valid, and every body has one, in the model %s',
    { tags: ['slow'] },
    (_, { list, ...rest }, least) => {
      const described = describeRoutes(httpDoor.createRoutes({ list, ...rest }));
      const { components, paths: all } = withoutReferences(JSON.parse(JSON.stringify(described)));
      const examples = Object.entries<JsonSchema>(components.schemas).flatMap(([name, { examples, ...schema }]) =>
        ((examples as unknown[] | undefined) ?? []).map((example) => [name, schema, example] as const),
      );
      expect(examples.length).toBeGreaterThanOrEqual(least);
      for (const [name, schema, example] of examples) {
        expect(example, name).toBeTypeOf('object');
        expect(ajv.validate(schema, example), `${name}: ${JSON.stringify(example)} ${ajv.errorsText()}`).toBe(true);
      }
      for (const operation of Object.values<Record<string, Operation>>(all).flatMap((methods) =>
        Object.values(methods),
      ))
        for (const body of [operation.requestBody, operation.responses[200], operation.responses[201]]) {
          const schema = body?.content?.['application/json']?.schema;
          if (schema) expect(JSON.stringify(schema), operation.operationId).toContain('"examples"');
        }
    },
  );

  test('have the fields of every part of an intersection', () => {
    const lengths = z.looseObject({ length: z.int() });
    const schema = httpDoor.toJsonSchema(z.intersection(lengths, z.looseObject({ width: z.int() })));
    const example = httpDoor.createExample(schema);
    expect(example).toEqual({ length: 1, width: 1 });
    expect(ajv.validate(schema, example)).toBe(true);
    expect(httpDoor.createExample({ allOf: [{ type: 'string' }, { minLength: 9 }] })).toBeUndefined();
  });

  test('are left out for a pattern that cannot be parsed, and match one with other flags', () => {
    const things = defineEntity('things', {
      schema: z.object({
        thingId: z.string().regex(/^\d{3}-\d{4}$/),
        letters: z.string().regex(/^[\p{L}--[a-z]]$/v),
        other: z.string().meta({ pattern: '(' }).optional(),
      }),
      table: 'things',
      key: { partition: '{thingId}', row: 'thing' },
      access: { read: ['operator'], write: ['operator'] },
    });
    const roles = ['operator'];
    const whole = describeRoutes(
      httpDoor.createRoutes(defineModel({ roles, operatorRole: 'operator', entities: [things] })),
    );
    expect(JSON.stringify(whole)).toContain('"examples":[{"thingId":"123-4567","letters":"A"}]');
  });

  test.each([
    ['a version of UUIDs', z.uuidv7()],
    ['a precision of an instant', z.iso.datetime({ precision: 3 })],
    ['a tuple', z.tuple([z.string(), z.int()])],
    ['a number that a patch may remove', z.number().nullable()],
  ])('are valid values of %s, as are those of its JSON Schema', (_, type) => {
    const schema = httpDoor.toJsonSchema(type);
    const example = httpDoor.createExample(schema);
    expect(type.safeParse(example)).toMatchObject({ success: true });
    expect(ajv.validate(schema, example)).toBe(true);
  });

  test('are left out for a format with a rule that they break', () => {
    const schema = httpDoor.toJsonSchema(z.email({ pattern: /@example\.org$/ }));
    expect(schema).toMatchObject({ format: 'email', pattern: '@example\\.org$' });
    expect(httpDoor.createExample(schema)).toBeUndefined();
  });

  test('are the values of a create, and of the key in a path', () => {
    const { requestBody } = openapi.paths['/api/employees'].post;
    const name = requestBody.content['application/json'].schema.$ref.split('/').at(-1);
    expect(openapi.components.schemas[name].examples).toEqual([
      expect.objectContaining({ email: 'ann@example.com', employeeId: '123456', hireDate: '2026-11-20' }),
    ]);
    const [, employeeId] = paths['/api/employees/{department}/{employeeId}']?.get?.parameters ?? [];
    expect(employeeId).toMatchObject({ name: 'employeeId', schema: { examples: ['123456'] } });
  });
});

test('describes the problems that callers of an operation distinguish by status, and the others together', () => {
  const { get, put } = openapi.paths['/api/departments/{department}'];
  expect(Object.keys(put.responses)).toEqual(['200', '201', '404', '409', '412', 'default']);
  expect(Object.keys(get.responses)).toEqual(['200', '304', '404', 'default']);
  const { responses } = openapi.components;
  expect(responses[412].description).toContain('etag-mismatch');
  expect(responses.Problem.description).toContain('- 401: `unauthenticated`\n- 403: `forbidden`\n');
  const codes = [404, 409, 412, 'Problem'].flatMap((name) =>
    [...responses[name].description.matchAll(/(?<=^(?:- .*)?)`([\w-]+)`/gm)].map(([, code]) => code),
  );
  expect(codes.sort()).toEqual(Object.keys(httpDoor.PROBLEMS).sort());
});

test('says that a file of the own entity needs no write role only if callers own entities', () => {
  const photos = defineEntity('photos', {
    schema: z.object({ album: z.string(), name: z.string() }),
    table: 'photos',
    key: { partition: '{album}', row: '{name}' },
    attachments: { image: { container: 'images', maxBytes: 1_000, types: ['image/png'] } },
    access: { read: ['reader'], write: ['operator'] },
  });
  const unowned = defineModel({ roles: ['reader', 'operator'], operatorRole: 'operator', entities: [photos] });
  const summaryOf = (declared: typeof model | typeof unowned, name: string) =>
    httpDoor.createRoutes(declared).find((route) => route.name === name)?.summary;
  expect(summaryOf(unowned, 'photos-file-image-put')).toBe('Write the image of an entity of photos');
  expect(summaryOf(model, 'employees-file-photo-put')).toContain("the caller's own needs no write role");
});

test('does not describe a generated value as a default', () => {
  expect(openapi.components.schemas.LoginsCreateBody.properties.at).toEqual({
    type: ['string', 'null'],
    format: 'date-time',
  });
});

test('describes a model with computed defaults with the same text at any time', () => {
  let hour = 10;
  const computed = () => String(hour++);
  const things = defineEntity('things', {
    schema: z.object({
      thingId: z.string(),
      hour: z
        .string()
        .regex(/^\d{2}$/)
        .default(computed),
      note: z.object({ hour: z.string().default(computed) }).optional(),
      before: z
        .string()
        .regex(/^\d{2}$/)
        .prefault(computed),
    }),
    table: 'things',
    key: { partition: '{thingId}', row: '{hour}' },
    access: { read: ['operator'], write: ['operator'] },
  });
  const model = defineModel({ roles: ['operator'], operatorRole: 'operator', entities: [things] });
  const [first, again] = [describeRoutes(httpDoor.createRoutes(model)), describeRoutes(httpDoor.createRoutes(model))];
  expect(JSON.stringify(again)).toBe(JSON.stringify(first));
  const { properties, required, examples } = Object(first.components.schemas).ThingsCreateBody;
  expect(properties.hour).toEqual({ type: ['string', 'null'], pattern: '^\\d{2}$' });
  expect(required).toEqual(['thingId']);
  expect(examples[0].hour).toMatch(/^\d{2}$/);
});

test('lists no explanation among the responses, of which a generated client has those of the operation alone', () => {
  const described = JSON.stringify(operations.map(({ responses }) => responses));
  expect(described).not.toContain(httpDoor.EXPLANATION_TYPE);
  expect(
    operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'explain')).length,
  ).toBeGreaterThan(50);
  const { Explanation } = openapi.components.schemas;
  expect(Explanation.required).toEqual(['steps', 'transactions']);
  const [create] = operations.filter(({ operationId }) => operationId === 'employees-create');
  expect(Object.keys(create?.responses ?? {}).filter((status) => status.startsWith('2'))).toEqual(['201']);
});

describe('a filter', () => {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  const declared = defineEntity('things', {
    schema: z.object({
      place: z.string().min(1),
      id: z.string().regex(/^\d{3}$/),
      name: z.string().max(5).optional(),
      note: z.string().optional(),
      grade: z.enum(['A', 'B']).optional(),
      size: z.literal([1, 2]).optional(),
      since: z.iso.date().optional(),
      age: z.int32().min(0).max(150).optional(),
      weight: z.number().gt(0).optional(),
      isOld: z.boolean().optional(),
    }),
    table: 'things',
    key: { partition: '{place}', row: '{id}' },
    access: { read: ['operator'], write: ['operator'] },
  });
  const model = defineModel({ roles: ['operator'], operatorRole: 'operator', entities: [declared] });
  const [things] = model.list;
  const routes = httpDoor.createRoutes(model);
  const range = routes.find(({ name }) => name === 'things-range');
  const described: OpenApi = withoutReferences(JSON.parse(JSON.stringify(describeRoutes(routes))));
  const parameters = described.paths['/api/things/{place}']?.get?.parameters ?? [];

  const isDescribed = (field: string, text: string) => {
    const schema = parameters.find(({ name, in: place }) => name === field && place === 'query')?.schema;
    if (!schema) throw new Error(field);
    return ajv.validate(schema, [text]);
  };
  const isAccepted = (field: string, text: string) => {
    try {
      const asked = httpDoor.readFilter(
        { query: new URLSearchParams([[field, text]]) },
        things as Entity,
        range?.filters ?? {},
      );
      defineCodec.compileFilter(things as Entity, asked);
      return true;
    } catch {
      return false;
    }
  };
  const fields = ['id', 'name', 'note', 'grade', 'size', 'since', 'age', 'weight', 'isOld'];
  const values = fc.oneof(
    fc.constantFrom(
      '',
      'A',
      'B',
      'C',
      'a',
      '123',
      '12',
      '12345',
      '123456',
      '2026-11-20',
      '2026-11',
      '2026-02-30',
      'true',
    ),
    fc.constantFrom('1', '2', '3', '0', '-1', '150', '151', '0.5', '-0.5', 'false', 'TRUE', 'xx:1', '2147483648'),
    fc.integer({ min: -2, max: 152 }).map(String),
    fc.string({ unit: 'grapheme', maxLength: 7 }).filter((text) => text.isWellFormed() && !text.includes(':')),
  );
  const operators = fc.constantFrom('eq:', 'ne:', 'gt:', 'ge:', 'lt:', 'le:', 'in:');

  /** A text has no bounds, so any number is described. */
  const isNumber = (field: string, text: string) =>
    ['age', 'weight'].includes(field) && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

  test('by a value is accepted exactly if the description has it, but for the bounds of a number', {
    tags: ['slow'],
  }, () => {
    fc.assert(
      fc.property(fc.constantFrom(...fields), values, (field, text) => {
        expect(isAccepted(field, text) || isNumber(field, text), `${field}=${text}`).toBe(isDescribed(field, text));
      }),
      { numRuns: 2_000 },
    );
  });

  test('by a comparison is described if it is accepted', { tags: ['slow'] }, () => {
    const lists = fc.array(values, { minLength: 1, maxLength: 3 }).map((all) => all.join(','));
    fc.assert(
      fc.property(fc.constantFrom(...fields), operators, fc.oneof(values, lists), (field, operator, value) => {
        const text = operator + value;
        if (isAccepted(field, text)) expect(isDescribed(field, text), `${field}=${text}`).toBe(true);
      }),
      { numRuns: 2_000 },
    );
    for (const text of ['ge:', 'ge:x', 'in:1,', 'eq:1x', 'in:1,x'])
      expect([isDescribed('age', text), isAccepted('age', text)], text).toEqual([false, false]);
    for (const text of ['gt:true', 'eq:1', 'in:true,'])
      expect([isDescribed('isOld', text), isAccepted('isOld', text)], text).toEqual([false, false]);
  });
});

describe('the description and a response', () => {
  const { disagreement } = openapiChecker(openapi, httpDoor.createRoutes(model));
  const problem = {
    type: '/api/problems#not-found',
    title: 'Not found',
    status: 404,
    detail: 'None.',
    code: 'not-found',
  };
  const answer = (over: Partial<Omit<Exchange, 'headers'>> & { body?: unknown; type?: string; headers?: object }) =>
    disagreement({
      method: over.method ?? 'GET',
      path: over.path ?? '/api/departments/Sales',
      status: over.status ?? 200,
      headers: new Headers({ 'content-type': over.type ?? 'application/json', ...(over.headers ?? { etag: '"1"' }) }),
      text: over.text ?? JSON.stringify(over.body),
    });
  const explanation = { steps: [{ read: 'row', table: 't', partition: 'p', row: 'r' }], transactions: 1 };
  const FILE = '/api/operations/files/formeremployees/Sales/000001/photo';
  const film = { genre: 'Drama', title: 'Alien', year: 1979, filmId: '1', cast: ['A'] };

  test.each([
    ['an entity', { body: { department: 'Sales' } }],
    [
      'an explanation',
      { path: '/api/departments/Sales?explain=true', type: httpDoor.EXPLANATION_TYPE, body: explanation },
    ],
    [
      'an explanation of a create',
      { method: 'POST', path: '/api/people?explain=true', type: httpDoor.EXPLANATION_TYPE, body: explanation },
    ],
    ['a part copy', { path: '/api/movies/by/actor/A', body: { items: [film] } }],
    ['a selection', { path: '/api/movies/Drama?select=title', body: { items: [{ title: 'Alien' }] } }],
    [
      'a degraded health',
      {
        path: '/api/health',
        status: 503,
        body: { status: 'degraded', storage: 'unavailable', declaration: 'unknown', settings: 'ok', resources: 'ok' },
      },
    ],
    ['a problem', { status: 404, type: 'application/problem+json', body: problem }],
    ['a 304', { status: 304, text: '', headers: { etag: '"1"' } }],
    ['a 304 of a file', { path: FILE, status: 304, text: '', headers: { etag: '"1"' } }],
    ['a page', { path: '/api/problems', type: 'text/html; charset=utf-8', text: '<!doctype html>' }],
    ['no operation', { path: '/api/nothing', status: 404, text: '' }],
  ])('agree: %s', (_, over) => {
    expect(answer(over)).toBeUndefined();
  });

  test.each([
    ['a field that is not described', { body: { department: 'Sales', secret: 1 } }, 'additional'],
    ['a required field that is missing', { body: { description: 'x' } }, "required property 'department'"],
    ['a part copy without its key', { path: '/api/movies/by/actor/A', body: { items: [{ cast: [] }] } }, 'title'],
    ['an explanation as JSON', { method: 'POST', path: '/api/people?explain=true', body: explanation }, 'media type'],
    ['an explanation without steps', { type: httpDoor.EXPLANATION_TYPE, body: { transactions: 0 } }, 'steps'],
    ['a problem as JSON', { status: 404, body: problem }, 'media type'],
    ['an empty problem', { status: 404, text: '' }, 'media type "application/json"'],
    [
      'a degraded health that is well',
      { path: '/api/health', status: 503, body: { status: 'well' } },
      'allowed values',
    ],
    ['a 304 without an ETag', { status: 304, text: '', headers: {} }, 'ETag'],
    ['a 304 with a body', { status: 304, body: {}, headers: { etag: '"1"' } }, 'a body'],
    ['a 304 of a file without an ETag', { path: FILE, status: 304, text: '', headers: {} }, 'ETag'],
    ['a 401 without WWW-Authenticate', { status: 401, type: 'application/problem+json', body: problem }, 'WWW-Auth'],
    ['a create without ETag', { method: 'POST', path: '/api/movies', status: 201, body: film, headers: {} }, 'ETag'],
  ])('disagree: %s', (_, over, why) => {
    expect(answer(over)).toContain(why);
  });
});
