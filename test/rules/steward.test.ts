import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  defineOperation,
  type Implementations,
  interPartitionIndex,
  subject,
  total,
} from '../../lib/index.ts';
import { createTestStore } from '../../lib/testing/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { openAccessApp } from '../access-app.ts';
import { faultyHttpClient } from '../faulty-http-client.ts';
import { storageBlobs } from '../kit/storage.ts';

/** The role that reads and writes every row past the rules, with each of its reads in the audit log. */

/** Each user sees and changes the user's own. */
const notes = defineEntity('notes', {
  schema: z.object({ ownerId: z.string(), noteId: z.string(), text: z.string(), tag: z.string() }),
  table: 'notes',
  key: { partition: '{ownerId}', row: '{noteId}' },
  indexes: { tag: interPartitionIndex({ table: 'notesbytag', partition: '{tag}', row: '{ownerId}_{noteId}' }) },
  totals: { perTag: total({ table: 'notespertag', partition: '{ownerId}', row: '{tag}' }) },
  access: {
    read: [{ role: 'user', where: { ownerId: subject() } }],
    write: [{ role: 'user', where: { ownerId: subject() } }],
    set: { ownerId: subject() },
  },
});
const pictures = defineEntity('pictures', {
  schema: z.object({ ownerId: z.string(), pictureId: z.string() }),
  table: 'pictures',
  key: { partition: '{ownerId}', row: '{pictureId}' },
  attachments: { photo: { container: 'photos', types: ['image/png'], maxBytes: 10_000 } },
  access: {
    read: [{ role: 'user', where: { ownerId: subject() } }],
    write: [{ role: 'user', where: { ownerId: subject() } }],
  },
});
/** Only the app itself writes it. */
const events = defineEntity('events', {
  schema: z.object({ day: z.string(), eventId: z.string().regex(/^\d$/) }),
  table: 'events',
  key: { partition: '{day}', row: '{eventId}' },
  access: { read: ['user'], write: [] },
});
/** Has a field that the steward may not read. */
const people = defineEntity('people', {
  schema: z.object({ personId: z.string(), email: z.string(), taxId: z.string().optional() }),
  table: 'people',
  key: { partition: '{personId}', row: 'person' },
  split: { secret: ['taxId'] },
  indexes: { email: interPartitionIndex({ table: 'peoplebyemail', partition: '{email}', row: 'x', unique: true }) },
  access: {
    read: ['user', 'officer'],
    write: ['officer'],
    restricted: { taxId: ['officer'] },
    own: { claim: 'email', index: 'email', verifiedBy: {} },
  },
});
/** The same without `own`, with other access. */
const peopleWith = (over: object) =>
  defineEntity('people', {
    schema: people.schema,
    table: 'people',
    key: { partition: '{personId}', row: 'person' },
    access: { read: ['user'], write: ['officer'], restricted: { taxId: ['officer'] }, ...over },
  });
/** All pay slips of a partition are those of one person. */
const slips = defineEntity('slips', {
  schema: z.object({ personId: z.string(), month: z.string(), isFinal: z.boolean() }),
  table: 'slips',
  key: { partition: '{personId}', row: 'slip_{month}' },
  access: {
    read: [{ role: 'user', where: { isFinal: true }, lists: 'filtered' }, 'officer'],
    write: ['officer'],
    own: { through: people, permissions: 'r' },
  },
});
/** The remarks beside an event. */
const remarks = defineEntity('remarks', {
  schema: z.object({ day: z.string(), eventId: z.string().regex(/^\d$/), remarkId: z.string() }),
  table: 'events',
  key: { partition: '{day}', row: '{eventId}_remark_{remarkId}' },
  childOf: events,
  access: { read: ['user'], write: ['user'] },
});
/** Its days become archives. */
const visits = defineEntity('visits', {
  schema: z.object({ visitId: z.string(), at: z.iso.datetime() }),
  table: 'visits',
  key: { partition: '{visitId}', row: '{at}' },
  period: { per: 'day', field: 'at', keep: 3, archiveTo: 'blob' },
  access: { read: ['user'], write: ['user'] },
});
const peek = defineOperation('peek', {
  summary: 'Reads the note of another user',
  kind: 'read',
  roles: ['admin'],
  input: z.strictObject({ ownerId: z.string() }),
  output: z.object({ text: z.string() }),
});
const declaration = {
  roles: ['user', 'officer', 'admin', 'operator'],
  operatorRole: 'operator',
  steward: 'admin',
  entities: [notes, pictures, events, remarks, people, slips, visits],
} as const;
const model = defineModel({ ...declaration, operations: [peek] });
const admin = { subject: 'root', roles: ['admin'] };
const user = (subject: string) => ({ subject, roles: ['user'], claims: { email: `${subject}@example.org` } });

const operations: Implementations<typeof model> = {
  async peek({ store, input: { ownerId } }) {
    return { text: (await store.notes.get({ ownerId, noteId: 'n1' }))?.values.tag ?? '' };
  },
};

let app: Awaited<ReturnType<typeof openAccessApp>>;
const note = (ownerId: string, noteId: string) => ({ ownerId, noteId, text: '', tag: 'x' });
/** The reads in the audit log since a time, without ids and times. */
async function readsSince(since: number) {
  const [from, to] = [since, Date.now() + 60_000].map((at) => new Date(at).toISOString());
  const { body } = await app.ask(
    { roles: ['operator', 'officer', 'admin'], subject: 'op' },
    'GET',
    `operations/audit?from=${from}&to=${to}`,
  );
  const items = body.items as { operation: string; by: string; at: string; id: string }[];
  return items
    .filter(({ operation, at }) => operation === 'read' && Date.parse(at) >= since)
    .map(({ id: _, at: __, operation: ___, ...rest }) => rest);
}

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model, { operations });
  const { text, tag } = note('', '');
  await app.ask(user('ann'), 'POST', 'notes', { noteId: 'n1', text, tag });
  await app.ask(user('bob'), 'POST', 'notes', { noteId: 'n2', text, tag });
  await app.ask(user('ann'), 'POST', 'pictures', { ownerId: 'ann', pictureId: 'x1' });
  await app.ask(user('ann'), 'PUT', 'pictures/ann/x1/photo', PNG);
  const officer = { roles: ['officer'] };
  await app.ask(officer, 'POST', 'people', { personId: 'p1', email: 'ann@example.org', taxId: '7' });
  for (const month of ['2026-01', '2026-02'])
    await app.ask(officer, 'POST', 'slips', { personId: 'p1', month, isFinal: false });
});

describe('a steward', () => {
  test('reads rows that the rules keep from others, one by one, in lists and through indexes', async () => {
    expect((await app.ask(user('bob'), 'GET', 'notes/ann/n1')).status).toBe(404);
    expect((await app.ask(admin, 'GET', 'notes/ann/n1')).body).toMatchObject({ noteId: 'n1' });
    expect((await app.ask(admin, 'GET', 'notes/ann')).body.items).toHaveLength(1);
    expect((await app.ask(admin, 'GET', 'notes/by/tag/x')).body.items).toHaveLength(2);
    expect((await app.ask(admin, 'GET', 'slips/p1')).body.items).toHaveLength(2);
    expect((await app.ask(admin, 'GET', 'pictures/ann/x1/photo')).status).toBe(200);
  });

  test('lists as a user what the rules let the user read', async () => {
    const list = await app.ask({ ...user('ann'), roles: ['user', 'admin'] }, 'GET', 'notes');
    expect(list.body.items).toMatchObject([{ ownerId: 'ann', noteId: 'n1' }]);
    expect((await app.ask(admin, 'GET', 'notes')).status).toBe(403);
  });

  test('changes and deletes them, also those that only the app writes', async () => {
    await app.ask(user('cid'), 'POST', 'notes', { noteId: 'n3', text: '', tag: 'y' });
    expect(await app.ask(admin, 'PATCH', 'notes/cid/n3', { text: 'moderated' })).toMatchObject({
      status: 200,
      body: { ownerId: 'cid', text: 'moderated' },
    });
    expect((await app.ask(admin, 'DELETE', 'notes/cid/n3')).status).toBe(204);
    expect((await app.ask(user('ann'), 'POST', 'events', { day: '1', eventId: '1' })).status).toBe(403);
    expect((await app.ask(admin, 'POST', 'events', { day: '1', eventId: '1' })).status).toBe(201);
  });

  test('reads whole tables, as nobody else but operators who may read the entity', async () => {
    const [scan, ofUser] = [await app.ask(admin, 'GET', 'operations/scan/notes'), user('ann')];
    expect(scan).toMatchObject({ status: 200 });
    expect(new Set(scan.body.items.map(({ ownerId }: { ownerId: string }) => ownerId)).size).toBeGreaterThan(1);
    expect((await app.ask(ofUser, 'GET', 'operations/scan/notes')).status).toBe(403);
    expect((await app.ask({ roles: ['operator'] }, 'GET', 'operations/scan/notes')).status).toBe(403);
    expect((await app.ask(admin, 'GET', 'operations/queues')).status).toBe(403);
  });

  test('creates no row of another user', async () => {
    const forged = await app.ask(admin, 'POST', 'notes', { ...note('ann', 'n9') });
    expect(forged.status).toBe(403);
    expect((await app.ask(admin, 'POST', 'notes', { noteId: 'n9', text: '', tag: 'z' })).body.ownerId).toBe('root');
  });

  test('neither reads a restricted field nor writes its entity, unless the field names the role', async () => {
    expect((await app.ask(admin, 'GET', 'people/p1?include=secret')).body).toEqual({
      personId: 'p1',
      email: 'ann@example.org',
    });
    for (const [method, body] of [
      ['PATCH', { email: 'x' }],
      ['PUT', { email: 'x' }],
      ['DELETE', undefined],
    ] as const)
      expect((await app.ask(admin, method, 'people/p1', body)).status).toBe(403);
    const ruled = { delete: ['officer'], create: [{ role: 'officer', where: { email: 'x' } }] };
    const [withRules] = defineModel({ ...declaration, entities: [peopleWith({ write: ruled })] }).list;
    expect(withRules?.access.rules?.delete).toEqual([{ role: 'officer', where: {} }]);
    expect(withRules?.access.rules?.read.map(({ role }) => role)).toContain('admin');
    const named = defineModel({
      ...declaration,
      entities: [peopleWith({ restricted: { taxId: ['officer', 'admin'] } })],
    });
    const { store } = await createTestStore(named);
    await store.people.create({ personId: 'p1', email: 'x', taxId: '7' });
    const caller = { ...admin, claims: {} };
    expect((await store.as(caller).people.get({ personId: 'p1' }))?.values.taxId).toBe('7');
    await store.as(caller).people.update({ personId: 'p1' }, { email: 'y' });
  });

  test('gets no signature, and one who is a user too gets those of a user', async () => {
    const grant = (caller: object, entity: string) => app.ask(caller, 'POST', 'grants', { entity, scope: 'own' });
    const both = { ...user('ann'), roles: ['user', 'admin'] };
    expect((await grant({ ...admin, claims: { email: 'ann@example.org' } }, 'people')).status).toBe(403);
    expect((await grant(both, 'people')).status).toBe(201);
    // The rules of a user leave some rows of the partition, which are no range.
    expect([await grant(user('ann'), 'slips'), await grant(both, 'slips')].map(({ status }) => status)).toEqual([
      403, 403,
    ]);
    for (const caller of [admin, { ...user('bob'), roles: ['user', 'admin'] }]) {
      const refused = await app.ask(caller, 'POST', 'pictures/ann/x1/photo/grants', {});
      expect(refused.status).toBeGreaterThanOrEqual(403);
      expect(String(refused.body.accepted)).not.toContain('admin');
      expect(
        (await app.ask(caller, 'POST', 'pictures/ann/x1/photo/uploads', { type: 'image/png', bytes: 9 })).status,
      ).toBeGreaterThanOrEqual(403);
    }
    expect(
      (await app.ask({ ...user('ann'), roles: ['user', 'admin'] }, 'POST', 'pictures/ann/x1/photo/grants', {})).status,
    ).toBe(201);
  });
});

test('a steward who is an operator gets no link to an archive of a period, for which it needs another role', async () => {
  const name = 'visits/2020-01-01/1.ndjson.gz';
  const client = app.storage.container(storageBlobs.PERIOD_ARCHIVES_CONTAINER).getBlockBlobClient(name);
  await client.upload('', 0, { metadata: { state: 'verified', rows: '1', hash: '' } });
  const grant = (roles: string[]) =>
    app.ask({ subject: 'op', roles }, 'POST', 'operations/period-archives/grants', { name });
  expect((await grant(['operator', 'admin'])).status).toBe(403);
  expect((await grant(['operator', 'admin', 'user'])).status).toBe(201);
});

describe('each read of a steward', () => {
  const read = { by: 'root', entity: 'notes', table: 'notes', fields: [] };
  const ofTotals = { ...read, table: 'notespertag', partition: 'ann' };

  test.each([
    ['GET', 'notes/ann/n1', { ...read, partition: 'ann', row: 'n1' }],
    ['GET', 'notes/ann/none', { ...read, partition: 'ann', row: 'none' }],
    ['GET', 'notes/ann', { ...read, partition: 'ann' }],
    ['GET', 'notes/by/tag/x', { ...read, table: 'notesbytag', partition: 'x', fields: ['tag'] }],
    ['GET', 'notes/totals/perTag/ann/x', { ...ofTotals, row: 't_x', fields: ['ownerId', 'tag'] }],
    ['GET', 'notes/totals/perTag/ann', { ...ofTotals, fields: ['ownerId'] }],
    ['GET', 'operations/scan/notes', { ...read, partition: '' }],
    ['GET', 'pictures/ann/x1/photo', { ...read, entity: 'pictures', table: 'pictures', partition: 'ann', row: 'x1' }],
    ['POST', 'query', { ...read, partition: 'bob', row: 'n2' }],
  ] as const)('%s %s is in the audit log', async (method, path, expected) => {
    const since = Date.now();
    const body =
      method === 'POST' ? { reads: { one: { get: 'notes', key: { ownerId: 'bob', noteId: 'n2' } } } } : undefined;
    await app.ask(admin, method, path, body);
    expect(await readsSince(since)).toContainEqual(expected);
  });

  test.each([
    ['an explanation', 'GET', 'notes/ann/n1?explain=true', undefined],
    ['an explanation of a change', 'PATCH', 'notes/ann/n1?explain=true', {}],
    ['a change of nothing', 'PATCH', 'notes/ann/n1', {}],
    ['an operation that reads', 'POST', 'peek', { ownerId: 'ann' }],
  ] as const)('by %s is in the audit log', async (_, method, path, body) => {
    const since = Date.now();
    expect(await app.ask(admin, method, path, body)).toMatchObject({ status: 200 });
    expect(await readsSince(since)).toEqual([{ ...read, partition: 'ann', row: 'n1' }]);
  });

  test('by a question of an operator is in the audit log', async () => {
    const since = Date.now();
    const question = { entity: 'notes', key: { ownerId: 'ann', noteId: 'n1' }, caller: { subject: 'bob' } };
    const caller = { subject: 'root', roles: ['admin', 'operator'] };
    expect((await app.ask(caller, 'POST', 'operations/why', question)).status).toBe(200);
    expect(await readsSince(since)).toEqual([{ ...read, partition: 'ann', row: 'n1' }]);
  });

  test('with children names their entity', async () => {
    await app.ask(admin, 'POST', 'events', { day: '2', eventId: '1' });
    await app.ask(admin, 'POST', 'remarks', { day: '2', eventId: '1', remarkId: '1' });
    const since = Date.now();
    expect((await app.ask(admin, 'GET', 'events/2/1?include=remarks')).body.remarks).toHaveLength(1);
    const both = { ...read, table: 'events', partition: '2' };
    expect(await readsSince(since)).toEqual([
      { ...both, entity: 'events', row: '1' },
      { ...both, entity: 'remarks' },
    ]);
  });

  test('of a row that it changes is the change alone', async () => {
    const since = Date.now();
    expect((await app.ask(admin, 'PATCH', 'notes/bob/n2', { text: 'moderated' })).status).toBe(200);
    expect(await readsSince(since)).toEqual([]);
  });

  test('by a caller with other roles is recorded too, and none of others', async () => {
    const since = Date.now();
    await app.ask({ ...user('ann'), roles: ['user', 'admin'] }, 'GET', 'notes/ann/n1');
    await app.ask(user('ann'), 'GET', 'notes/ann/n1');
    expect((await readsSince(since)).filter(({ by }) => by === 'ann')).toHaveLength(1);
  });

  test('is refused while the audit log is away', async () => {
    const isAudit = ({ url }: { url: string }) => url.includes('/audit/');
    const away = await openAccessApp(import.meta.url, model, {
      operations,
      httpClient: {
        sendRequest: (request) => faultyHttpClient(isAudit(request) ? 'refused' : undefined, 1).sendRequest(request),
      },
    });
    const refused = await away.ask(admin, 'GET', 'notes/ann/n1');
    expect(refused).toMatchObject({ status: 503, body: { code: 'storage-unavailable' } });
    expect(refused.text).not.toContain('"x"');
    expect((await away.ask(user('ann'), 'GET', 'notes/ann/n1')).status).toBe(200);
  });
});

test.each([
  [
    { steward: 'boss' },
    'steward is "boss", which is not a role of the model. Use one of user, officer, admin, operator.',
  ],
  [{ signedIn: 'admin' }, 'steward is "admin", which is also signedIn: everybody would see everything.'],
  [{ anyone: 'admin' }, 'steward is "admin", which is also anyone: everybody would see everything.'],
])('a model rejects %j', (over, reason) => {
  expect(() => defineModel({ ...declaration, ...over } as never)).toThrow(reason);
});

test('a model without a steward has the rules that it declares', () => {
  const { steward: _, ...rest } = declaration;
  const [plain] = defineModel(rest).list;
  expect(plain?.access.read).toEqual(['user']);
  expect(plain?.access.rules?.read).toHaveLength(1);
});
