import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, defineSeries, interPartitionIndex, subject, total } from '../../lib/index.ts';
import { httpClient as defaultClient } from '../../local/walk/known-messages.ts';
import { PNG } from '../../local/walk/png.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { openAccessApp } from '../access-app.ts';
import { engineWrite } from '../kit/engine.ts';
import { storageRows } from '../kit/storage.ts';
import { log } from '../silent-log.ts';

/** What a model stores of one user is listed and erased, by the user and by operators, and nothing of anybody else. */

const mine = { role: 'user', where: { ownerId: subject() } } as const;
const notes = defineEntity('notes', {
  schema: z.object({
    ownerId: z.string(),
    noteId: z.string(),
    text: z.string(),
    story: z.string().optional(),
    pin: z.string().optional(),
    verdict: z.string().optional(),
  }),
  table: 'notes',
  key: { partition: '{ownerId}', row: 'note_{noteId}' },
  large: ['story'],
  encrypted: ['pin'],
  archive: { table: 'oldnotes' },
  ofUser: { ownerId: 'delete' },
  access: { read: ['root', mine], write: ['root'], restricted: { pin: ['root', mine], verdict: ['root'] } },
});
/** Users write them, and can neither read nor change them. */
const reports = defineEntity('reports', {
  schema: z.object({ shelf: z.string(), reportId: z.uuid(), by: z.string(), about: z.string(), words: z.int() }),
  table: 'reports',
  key: { partition: '{shelf}', row: 'report_{reportId}' },
  indexes: {
    by: interPartitionIndex({ table: 'reportsby', partition: '{by}', row: '{shelf}_{reportId}' }),
    about: interPartitionIndex({
      table: 'reportsabout',
      partition: '{about}',
      row: '{shelf}_{reportId}',
      copies: 'keys',
    }),
  },
  totals: { words: total({ table: 'reportwords', partition: 'all', row: '{by}', sum: ['words'] }) },
  attachments: { photo: { container: 'photos', types: ['image/png'], maxBytes: 10_000 } },
  ofUser: { by: { by: 'nobody', photo: null }, about: 'keep' },
  access: {
    read: ['root'],
    write: { create: ['user', 'root'], update: ['root'], delete: ['root'] },
    set: { by: subject() },
  },
});
const steps = defineSeries('steps', {
  schema: z.object({ ownerId: z.string(), day: z.iso.date() }),
  table: 'steps',
  key: { partition: '{ownerId}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23, perRow: 8 },
  ofUser: { ownerId: 'delete' },
  access: { read: [mine], write: [mine] },
});
/** A profile goes after the things that refer to it. */
const profiles = defineEntity('profiles', {
  schema: z.object({ userId: z.string(), name: z.string() }),
  table: 'profiles',
  key: { partition: '{userId}', row: 'profile' },
  ofUser: { userId: 'delete' },
  access: { read: ['root'], write: ['root'] },
});
const things = defineEntity('things', {
  schema: z.object({ userId: z.string(), thingId: z.string() }),
  table: 'things',
  key: { partition: '{userId}', row: 'thing_{thingId}' },
  references: { userId: { to: profiles, onDelete: 'refuse' } },
  ofUser: { userId: 'delete' },
  access: { read: ['root'], write: ['root'] },
});
const lendings = defineEntity('lendings', {
  schema: z.object({ lender: z.string(), lendingId: z.string() }),
  table: 'lendings',
  key: { partition: '{lender}', row: 'lending_{lendingId}' },
  references: { lender: { to: profiles, by: 'userId', onDelete: 'refuse' } },
  access: { read: ['root'], write: ['root'] },
});
const model = defineModel({
  roles: ['visitor', 'user', 'root'],
  operatorRole: 'root',
  anyone: 'visitor',
  entities: [notes, reports, steps, profiles, things, lendings],
});

const app = await openAccessApp(import.meta.url, model);
const worker = createQueueWorker({ engine: app.engine, entities: model.list, log }, { lastLogged: () => '' });
const as = (name: string, ...roles: string[]) => ({ subject: name, roles: roles.length > 0 ? roles : ['user'] });
const root = as('root', 'root');

const STORY = 'x'.repeat(70_000);
let users = 0;
/** Stores rows of two new users. */
async function storeTwo(): Promise<[ann: string, bob: string]> {
  users += 1;
  const names: [string, string] = [`ann ${users}`, `bob ${users}`];
  for (const user of names) {
    const [caller, path] = [as(user), encodeURIComponent(user)];
    const sent = [
      app.ask(root, 'PUT', `notes/${path}/1`, { ownerId: user, noteId: '1', text: 'a', pin: '1234', story: STORY }),
      app.ask(root, 'PUT', `notes/${path}/2`, { ownerId: user, noteId: '2', text: 'b', verdict: 'spam' }),
      app.ask(root, 'PUT', `notes/${path}/3`, { ownerId: user, noteId: '3', text: 'c' }),
      app.ask(caller, 'POST', 'reports', { shelf: 'a', reportId: crypto.randomUUID(), about: names[0], words: 7 }),
      app.ask(caller, 'PATCH', `steps/${path}/2026-11-20`, { counts: { 3: 5, 20: 1 } }),
      app.ask(root, 'PUT', `profiles/${path}`, { userId: user, name: 'N' }),
    ];
    for (const { status } of await Promise.all(sent)) expect(status).toBeLessThan(300);
    expect((await app.ask(root, 'POST', 'things', { userId: user, thingId: '1' })).status).toBe(201);
    expect((await app.ask(root, 'POST', `notes/${path}/3/archive`)).status).toBe(202);
  }
  await worker.settle();
  return names;
}

interface Listed {
  readonly entity: string;
  readonly field: string;
  readonly erasing: string;
  readonly values: Record<string, unknown>;
}
const nextOf = ({ headers }: { readonly headers: Headers }) =>
  /<(?:\/api\/)?(.*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

async function listOf(user: string, top = 100): Promise<Listed[]> {
  const items: Listed[] = [];
  for (let path: string | undefined = `me/data?top=${top}`; path !== undefined; ) {
    const page = await app.ask(as(user), 'GET', path);
    expect(page.status).toBe(200);
    expect(page.body.items.length).toBeLessThanOrEqual(top);
    items.push(...page.body.items);
    path = nextOf(page);
  }
  return items;
}
const countsOf = async (user: string) => {
  const { status, body } = await app.ask(root, 'POST', 'operations/users/data', { subject: user });
  expect(status).toBe(200);
  return body.items.map(({ entity, field, rows }: Record<string, unknown>) => `${entity}.${field} ${rows}`);
};

/** What the audit log has of the changes by an author. */
async function recordsOf(by: string) {
  const [from, to] = [-60_000, 60_000].map((more) => new Date(Date.now() + more).toISOString());
  const { body } = await app.ask(root, 'GET', `operations/audit?from=${from}&to=${to}&top=1000`);
  const items = body.items as Record<string, unknown>[];
  return items
    .filter((one) => one.by === by)
    .map(({ operation, entity, subject: whose }) => [operation, entity, whose]);
}

test('users list everything that is declared to be theirs, past rules, without fields that are restricted', async () => {
  const [ann, bob] = await storeTwo();
  const items = await listOf(ann);
  expect(items.map(({ entity, field, erasing }) => `${entity}.${field} ${erasing}`)).toEqual([
    'notes.ownerId delete',
    'notes.ownerId delete',
    'oldnotes.ownerId delete',
    'reports.by change',
    'reports.about keep',
    'reports.about keep',
    'steps.ownerId delete',
    'profiles.userId delete',
    'things.userId delete',
  ]);
  expect(items[0]?.values).toEqual({ ownerId: ann, noteId: '1', text: 'a', pin: '1234', story: STORY });
  expect(items[1]?.values).toEqual({ ownerId: ann, noteId: '2', text: 'b' });
  expect(items[3]?.values).toMatchObject({ by: ann, words: 7 });
  expect(items[6]?.values).toMatchObject({ day: '2026-11-20', counts: expect.arrayContaining([5, 1]) });
  expect(await listOf(ann, 1)).toEqual(items);
  expect((await listOf(bob)).every(({ values, field }) => values[field] === bob)).toBe(true);
});

describe.each(['the user', 'an operator'])('%s', (who) => {
  test('erases it, and nothing of anybody else', async () => {
    const [ann, bob] = await storeTwo();
    const before = await listOf(bob);
    const kept = (await listOf(ann)).filter(({ erasing }) => erasing === 'keep');
    const request = () =>
      who === 'the user'
        ? app.ask(as(ann), 'DELETE', 'me/data')
        : app.ask(root, 'POST', 'operations/users/erase', { subject: ann });
    expect(await request()).toMatchObject({ status: 200, body: { deleted: 6, changed: 1, failed: 0, problems: [] } });
    await worker.settle();
    const left = (await listOf(ann)).map(({ entity, values }) => ({ entity, ...values, by: undefined }));
    expect(left).toEqual(kept.map(({ entity, values }) => ({ entity, ...values, by: undefined })));
    expect(await listOf(bob)).toEqual(before);
    const { body: sums } = await app.ask(root, 'GET', 'reports/totals/words');
    expect(sums.items).toContainEqual(
      expect.objectContaining({ group: { by: 'nobody' }, count: users - 1, sum: { words: 7 * (users - 1) } }),
    );
    expect(sums.items).not.toContainEqual(expect.objectContaining({ group: { by: ann } }));
    const records = await recordsOf(who === 'the user' ? ann : 'root');
    expect(records).toContainEqual(['erase', 'users', ann]);
    expect(records).toContainEqual(['delete', 'notes', undefined]);
    expect(records).toContainEqual(['replace', 'reports', undefined]);
  });
});

test('operators count it, and see no row', async () => {
  const [ann, bob] = await storeTwo();
  expect(await countsOf(ann)).toEqual([
    'notes.ownerId 2',
    'oldnotes.ownerId 1',
    'reports.by 1',
    'reports.about 2',
    'steps.ownerId 1',
    'profiles.userId 1',
    'things.userId 1',
  ]);
  expect(await countsOf(bob)).toContain('reports.about 0');
  expect(await countsOf('/?#'.repeat(300))).toContain('notes.ownerId 0');
});

test('an entry of an index that was left behind erases nothing of its present user', async () => {
  const [ann, bob] = await storeTwo();
  const { body } = await app.ask(root, 'GET', `reports/by/by/${encodeURIComponent(bob)}`);
  const [{ reportId }] = body.items;
  const table = { table: 'reportsby', partition: bob };
  const { rows } = await storageRows.readRange(app.storage, { ...table, from: '' });
  const [entry] = rows;
  const { row = '', properties = {} } = entry ?? {};
  const left = { kind: 'upsert', row, properties: storageRows.toRowProperties({ ...properties, by: ann }) } as const;
  await storageRows.submit(app.storage, { table: 'reportsby', partition: ann, actions: [left] });
  expect(await countsOf(ann)).toContain('reports.by 2');
  expect((await app.ask(as(ann), 'DELETE', 'me/data')).body).toMatchObject({ changed: 1, failed: 0 });
  expect((await app.ask(root, 'GET', `reports/a/${reportId}`)).body).toMatchObject({ by: bob });
});

/** Another request writes after the row was read, and before it is erased. */
async function eraseBeside(user: string, isRead: (url: string) => boolean, write: () => Promise<unknown>) {
  let isFirst = true;
  const racing = await openAccessApp(import.meta.url, model, {
    httpClient: {
      async sendRequest(request) {
        const response = await defaultClient.sendRequest(request);
        if (isFirst && request.method === 'GET' && isRead(request.url)) {
          isFirst = false;
          await write();
        }
        return response;
      },
    },
  });
  const { body } = await racing.ask(as(user), 'DELETE', 'me/data');
  expect(isFirst).toBe(false);
  return body;
}

test('a row that changes while it is deleted stays, until the request is repeated', async () => {
  const [ann] = await storeTwo();
  const path = `notes/${encodeURIComponent(ann)}/2`;
  const done = await eraseBeside(
    ann,
    (url) => /\/notes\(.*note_2/.test(url),
    () => app.ask(root, 'PATCH', path, { text: 'other' }),
  );
  expect(done).toMatchObject({ failed: 1, problems: [{ code: 'etag-mismatch' }] });
  expect((await app.ask(root, 'GET', path)).body.text).toBe('other');
  expect((await app.ask(as(ann), 'DELETE', 'me/data')).body).toMatchObject({ deleted: 1, failed: 0 });
});

test('a row that becomes that of another user while it is changed stays', async () => {
  const [ann, bob] = await storeTwo();
  const [{ reportId }] = (await app.ask(root, 'GET', `reports/by/by/${encodeURIComponent(ann)}`)).body.items;
  const { reports: declared } = Object.fromEntries(model.list.map((entity) => [entity.name, entity]));
  if (!declared) throw new Error('The model has no reports.');
  const done = await eraseBeside(
    ann,
    (url) => /\/reports\(/.test(url),
    () => engineWrite.patchEntity(app.engine, declared, { shelf: 'a', reportId }, { by: bob }),
  );
  expect(done).toMatchObject({ changed: 0, failed: 0 });
  expect((await app.ask(root, 'GET', `reports/a/${reportId}`)).body.by).toBe(bob);
});

test('a file goes, and its row stays', async () => {
  const [ann, bob] = await storeTwo();
  const reportsOf = async (user: string) =>
    (await app.ask(root, 'GET', `reports/by/by/${encodeURIComponent(user)}`)).body.items;
  const paths: string[] = [];
  for (const user of [ann, bob]) {
    const [{ reportId }] = await reportsOf(user);
    paths.push(`reports/a/${reportId}/photo`);
    expect((await app.ask(root, 'PUT', String(paths.at(-1)), PNG)).status).toBe(200);
  }
  expect((await app.ask(as(ann), 'DELETE', 'me/data')).body).toMatchObject({ changed: 1, failed: 0 });
  const statuses = paths.map(async (path) => (await app.ask(root, 'GET', path)).status);
  expect(await Promise.all(statuses)).toEqual([404, 200]);
});

test('a row that cannot go does not hold up the others', async () => {
  const [ann, bob] = await storeTwo();
  const first = await app.ask(as(ann), 'DELETE', 'me/data');
  expect(first.body.failed).toBe(0);
  await app.ask(root, 'PUT', `profiles/${encodeURIComponent(ann)}`, { userId: ann, name: 'N' });
  await app.ask(root, 'POST', 'lendings', { lendingId: '1', lender: ann });
  const done = await app.ask(as(ann), 'DELETE', 'me/data');
  expect(done.body).toMatchObject({ deleted: 0, failed: 1, problems: [{ code: 'referenced' }] });
  expect((await app.ask(root, 'GET', `profiles/${encodeURIComponent(bob)}`)).status).toBe(200);
});

test('goes on where a request ended after its time', async () => {
  const [ann] = await storeTwo();
  let now = Date.now();
  // Each look at the clock takes seven seconds.
  const slow = await openAccessApp(import.meta.url, model, { now: () => (now += 7_000) });
  const answers = [];
  for (let path: string | undefined = 'me/data'; path !== undefined; ) {
    const answer = await slow.ask(as(ann), 'DELETE', path);
    expect(answer.status).toBe(200);
    answers.push(answer.body);
    path = nextOf(answer);
  }
  expect(answers.length).toBeGreaterThan(1);
  expect(answers.reduce((sum, { deleted, changed }) => sum + deleted + changed, 0)).toBe(7);
});

describe('a request of somebody else', () => {
  test.each([
    ['GET', 'me/data', { subject: '', roles: ['visitor'] }, 401],
    ['DELETE', 'me/data', { subject: '', roles: ['visitor'] }, 401],
    ['POST', 'operations/users/data', as('ann'), 403],
    ['POST', 'operations/users/erase', as('ann'), 403],
  ] as const)('%s %s is closed', async (method, path, caller, status) => {
    const body = method === 'POST' ? { subject: 'bob' } : undefined;
    expect((await app.ask(caller, method, path, body)).status).toBe(status);
  });

  test.each([
    ['GET', 'me/data'],
    ['DELETE', 'me/data'],
  ] as const)('to an explanation of %s %s by a caller who may not read whole tables', async (method, path) => {
    expect((await app.ask(as('ann'), method, `${path}?explain=true`)).status).toBe(403);
  });

  test('cannot continue where another user was', async () => {
    const [ann, bob] = await storeTwo();
    const page = await app.ask(as(ann), 'GET', 'me/data?top=1');
    const next = String(nextOf(page));
    const answer = await app.ask(as(bob), 'GET', next);
    expect(answer).toMatchObject({ status: 400, body: { field: 'continuation' } });
  });
});
