import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  between,
  defineClaims,
  defineEntity,
  defineModel,
  interPartitionIndex,
  memberOf,
  oneOf,
  own,
  startsWith,
  subject,
} from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';
import { httpDoor } from '../kit/http.ts';

/** What operators learn of the rules, and nobody else. */

const claims = defineClaims({ regions: { verifiedBy: {} } });

const people = defineEntity('people', {
  schema: z.object({ personId: z.string(), site: z.string(), account: z.string() }),
  table: 'people',
  key: { partition: '{site}', row: '{personId}' },
  indexes: {
    personId: interPartitionIndex({ table: 'peoplebyid', partition: '{personId}', row: 'p', unique: true }),
  },
  access: {
    read: ['root', { role: 'user', where: { site: own() } }],
    write: ['root'],
    restricted: { account: ['root', { role: 'user', where: { personId: subject() } }] },
    own: { claim: 'sub', index: 'personId' },
  },
});

const crew = defineEntity('crew', {
  schema: z.object({ userId: z.string(), shipId: z.string(), rank: z.string() }),
  table: 'crew',
  key: { partition: '{userId}', row: '{shipId}' },
  access: { read: ['root'], write: ['root'] },
});

const logs = defineEntity('logs', {
  schema: z.object({
    shipId: z.string(),
    logId: z.string(),
    author: z.string(),
    status: z.string(),
    region: z.string(),
    level: z.int(),
  }),
  table: 'logs',
  key: { partition: '{shipId}', row: 'log_{logId}' },
  indexes: { author: interPartitionIndex({ table: 'logsbyauthor', partition: '{author}', row: '{logId}_{shipId}' }) },
  access: {
    read: [
      'root',
      { role: 'user', where: { shipId: memberOf(crew, 'shipId') } },
      { role: 'guest', where: { region: claims.regions, status: 'open' }, lists: 'filtered' },
    ],
    write: {
      create: [{ role: 'user', where: { author: subject(), level: between(1, 3) } }],
      update: [{ role: 'user', where: { author: subject(), status: oneOf('draft', 'open') } }],
      delete: [
        'root',
        { role: 'user', where: { shipId: memberOf(crew, 'shipId', { rank: 'captain' }), region: startsWith('eu-') } },
      ],
    },
  },
});

const model = defineModel({
  roles: ['user', 'guest', 'root', 'operator'],
  operatorRole: 'operator',
  entities: [people, crew, logs],
});

const root = { subject: 'root', roles: ['root', 'operator'] };
const ann = { subject: 'ann', roles: ['user'], claims: { sub: 'ann' } };
const log = { shipId: 's1', logId: '1', author: 'bob', status: 'draft', region: 'eu-west', level: 2 };
let app: Awaited<ReturnType<typeof openAccessApp>>;

const ask = (caller: object, entity: string, key: object, of = root) =>
  app.ask(of, 'POST', 'operations/why', { entity, key, caller });
const whyLog = (caller: object, of = root) => ask(caller, 'logs', { shipId: 's1', logId: '1' }, of);

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
  await app.ask(root, 'POST', 'crew', { userId: 'ann', shipId: 's1', rank: 'mate' });
  await app.ask(root, 'POST', 'people', { personId: 'ann', site: 'north', account: 'a' });
  await app.ask(root, 'POST', 'people', { personId: 'bob', site: 'north', account: 'b' });
  expect((await app.ask({ subject: 'bob', roles: ['user'] }, 'POST', 'logs', log)).status).toBe(201);
});

test('why names the alternative and the term that decided', async () => {
  const { status, body } = await whyLog(ann);
  expect(status).toBe(200);
  expect(body.read.allowed).toBe(true);
  expect(body.read.alternatives).toEqual([
    { role: 'root', hasRole: false, allows: false, terms: [] },
    {
      role: 'user',
      hasRole: true,
      allows: true,
      terms: [{ term: "shipId is one of the caller's memberships in crew", caller: ['s1'], holds: true, row: 's1' }],
    },
    {
      role: 'guest',
      hasRole: false,
      allows: false,
      terms: [{ term: "region is in the caller's claim regions" }, { term: 'status is "open"' }],
    },
  ]);
  expect([body.create.allowed, body.update.allowed, body.delete.allowed]).toEqual([false, false, false]);
  expect(body.update.alternatives[0].terms).toEqual([
    { term: 'author is the caller', caller: ['ann'], holds: false, row: 'bob' },
    { term: 'status is "draft" or "open"', holds: true, row: 'draft' },
  ]);
  expect(body.delete.alternatives[1].terms).toEqual([
    {
      term: 'shipId is one of the caller\'s memberships in crew with rank "captain"',
      caller: [],
      holds: false,
      row: 's1',
    },
    { term: 'region begins with "eu-"', holds: true, row: 'eu-west' },
  ]);
  const guest = await whyLog({ subject: 'cid', roles: ['guest'], claims: { regions: ['us', 'eu-west'] } });
  expect(guest.body.read.allowed).toBe(false);
  expect(guest.body.read.alternatives[2].terms).toMatchObject([
    { caller: ['us', 'eu-west'], holds: true, row: 'eu-west' },
    { holds: false, row: 'draft' },
  ]);
});

test('why decides as the requests of the caller do', async () => {
  const callers = [
    ann,
    { subject: 'bob', roles: ['user'] },
    { subject: 'cid', roles: ['guest'], claims: { regions: 'eu-west' } },
    { subject: 'dan', roles: [] },
    root,
  ];
  for (const caller of callers) {
    const { body } = await whyLog(caller);
    const got = await app.ask(caller, 'GET', 'logs/s1/1');
    expect([body.read.allowed, got.status === 200]).toEqual([got.status === 200, body.read.allowed]);
    const patched = await app.ask(caller, 'PATCH', 'logs/s1/1', { level: 2 });
    expect(body.update.allowed).toBe(patched.status === 200);
  }
});

test('why tells which fields of the row are hidden from the caller', async () => {
  const of = async (personId: string) => (await ask(ann, 'people', { site: 'north', personId })).body;
  expect((await of('ann')).hidden).toEqual([]);
  const other = await of('bob');
  expect(other.hidden).toEqual(['account']);
  expect(other.read.alternatives[1].terms).toEqual([
    { term: "site is that of the caller's own row of people", caller: ['north'], holds: true, row: 'north' },
  ]);
  expect((await ask(ann, 'people', { site: 'north', personId: 'eve' })).status).toBe(404);
});

test('why says that a caller with too many memberships is refused as a whole', async () => {
  const rows = Array.from({ length: 101 }, (_, at) => ({ userId: 'max', shipId: `m${at}`, rank: 'mate' }));
  for (const some of [rows.slice(0, 100), rows.slice(100)])
    await app.ask(root, 'POST', 'crew/batch', { actions: some.map((put) => ({ put })) });
  const { body } = await whyLog({ subject: 'max', roles: ['user'] });
  const refused = 'The caller has more than 100 rows in crew.';
  expect(body.read).toEqual({ allowed: false, refused, alternatives: [] });
  expect(body.update.alternatives).toHaveLength(1);
  const got = await app.ask({ subject: 'max', roles: ['user'] }, 'GET', 'logs/s1/1');
  expect([got.status, got.body.detail]).toEqual([403, refused]);
});

test('why is for operators who may read every row of the entity, and of those in its rules', async () => {
  const statuses = [
    await whyLog(ann, { subject: 'ann', roles: ['user'] }),
    await whyLog(ann, { subject: 'ann', roles: ['root'] }),
    await whyLog(ann, { subject: 'ann', roles: ['operator', 'user'] }),
    await ask(ann, 'logs', { shipId: 's1', logId: '9' }, { subject: 'ann', roles: ['operator', 'user'] }),
  ].map(({ status, body }) => [status, body.detail]);
  expect(statuses.map(([status]) => status)).toEqual([403, 403, 403, 403]);
  expect(statuses[3]).toEqual(statuses[2]);
  const wrong = await ask(ann, 'nothing', {});
  expect([wrong.status, wrong.body.accepted]).toEqual([400, 'people, crew, logs']);
  expect((await app.ask(root, 'POST', 'operations/why', { entity: 'logs', key: {}, caller: ann })).status).toBe(400);
});

test('an explanation has the alternative that bounded a list, for operators alone', async () => {
  const explain = async (roles: string[]) =>
    (await app.ask({ subject: 'ann', roles }, 'GET', 'logs/s1?explain=true')).body;
  expect(await explain(['user'])).not.toHaveProperty('rules');
  const seen = await explain(['user', 'operator']);
  expect(seen.rules).toEqual([
    {
      entity: 'logs',
      action: 'read',
      list: 'key',
      alternatives: [
        { role: 'user', terms: [{ term: "shipId is one of the caller's memberships in crew", caller: ['s1'] }] },
      ],
    },
  ]);
  expect((await explain(['root', 'operator'])).rules[0].alternatives).toEqual([{ role: 'root', terms: [] }]);
  const byKey = await app.ask({ subject: 'ann', roles: ['user', 'operator'] }, 'GET', 'logs/s1/1?explain=true');
  expect(byKey.body.rules[0]).not.toHaveProperty('list');
});

test('an explanation of a write names the roles that get it, and never one that reads some rows only', async () => {
  const bob = { subject: 'bob', roles: ['user'] };
  const { shipId: _, ...change } = log;
  const writes = [
    ['POST', 'logs', { ...log, logId: '2' }],
    ['PATCH', 'logs/s1/1', { level: 3 }],
    ['PUT', 'logs/s1/1', change],
    ['DELETE', 'logs/s1/1', undefined],
    ['POST', 'logs/batch', { actions: [{ put: log }] }],
    ['POST', 'transact', { actions: [{ entity: 'logs', put: log }] }],
  ] as const;
  for (const [method, path, body] of writes) {
    const explain = (caller: object) => app.ask(caller, method, `${path}?explain=true`, body);
    const { status, body: problem } = await explain(bob);
    expect([path, status, problem.accepted]).toEqual([path, 403, 'root']);
    expect(problem.detail).toMatch(
      /requires a role that may read every row of \w+ with all its fields; the token has none/,
    );
    const both = await explain({ ...bob, roles: ['user', 'root'] });
    expect([method, path, both.status === 403 ? both.body.accepted : '']).toEqual([method, path, '']);
  }
  const own = await app.ask(ann, 'POST', 'people?explain=true', { personId: 'eve', site: 'north', account: 'e' });
  expect([own.status, own.body.accepted]).toEqual([403, 'root']);
});

test('the model describes who may do what, in words', () => {
  const { logs: of, people: restricted, crew: byRoles } = httpDoor.describeModel(model).entities;
  const inCrew = "shipId is one of the caller's memberships in crew";
  expect(of?.access.rules).toEqual({
    read: [
      { role: 'root', terms: [], lists: { key: true, indexes: ['author'] } },
      { role: 'user', terms: [inCrew], lists: { key: true, indexes: [] } },
      {
        role: 'guest',
        terms: ["region is in the caller's claim regions", 'status is "open"'],
        lists: { key: true, indexes: ['author'] },
      },
    ],
    create: [{ role: 'user', terms: ['author is the caller', 'level is 1 to 3'] }],
    update: [{ role: 'user', terms: ['author is the caller', 'status is "draft" or "open"'] }],
    delete: [
      { role: 'root', terms: [] },
      { role: 'user', terms: [`${inCrew} with rank "captain"`, 'region begins with "eu-"'] },
    ],
    fields: {},
  });
  expect(restricted?.access.rules.fields.account).toEqual([
    { role: 'root', terms: [] },
    { role: 'user', terms: ['personId is the caller'] },
  ]);
  expect(byRoles?.access.rules.update).toEqual([{ role: 'root', terms: [] }]);
});

test('a caller asks who they are, and sees the claims that the model compares', async () => {
  const caller = { subject: 'cid', roles: ['guest'], claims: { regions: ['us'], email: 'c@x.org', sub: 'cid' } };
  const { status, body, headers } = await app.ask(caller, 'GET', 'me');
  expect([status, body]).toEqual([200, { subject: 'cid', roles: ['guest'], claims: { regions: ['us'], sub: 'cid' } }]);
  expect(headers.get('cache-control')).toBe('no-store');
  expect((await app.ask({ subject: 'dan', roles: [] }, 'GET', 'me')).status).toBe(403);
});
