import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, own, subject } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';

/** What a term of the caller's own row follows: the row itself, whatever its index copies, and the claim by which the row is found. */

const people = defineEntity('people', {
  schema: z.object({ personId: z.string(), site: z.string() }),
  table: 'people',
  key: { partition: '{personId}', row: 'person' },
  indexes: {
    personId: interPartitionIndex({
      table: 'peoplebyid',
      partition: '{personId}',
      row: 'p',
      unique: true,
      copies: 'keys',
    }),
  },
  access: { read: ['root', 'user'], write: ['root'], own: { claim: 'sub', index: 'personId' } },
});

const badges = defineEntity('badges', {
  schema: z.object({ email: z.string(), site: z.string() }),
  table: 'badges',
  key: { partition: '{site}', row: '{email}' },
  indexes: {
    email: interPartitionIndex({
      table: 'badgesbyemail',
      partition: '{email}',
      row: 'p',
      unique: true,
      copies: 'keys',
    }),
  },
  access: { read: ['root'], write: ['root'], own: { claim: 'email', index: 'email', verifiedBy: {} } },
});

const notes = defineEntity('notes', {
  schema: z.object({ site: z.string(), noteId: z.string() }),
  table: 'notes',
  key: { partition: '{site}', row: '{noteId}' },
  access: { read: ['root', { role: 'user', where: { site: own(people) } }], write: ['root'] },
});

const papers = defineEntity('papers', {
  schema: z.object({ personId: z.string(), site: z.string(), paperId: z.string() }),
  table: 'papers',
  key: { partition: '{personId}', row: '{site}_{paperId}' },
  access: {
    read: ['root', { role: 'user', where: { personId: subject(), site: own(badges) } }],
    write: ['root'],
    own: { through: people, permissions: 'r' },
  },
});

const model = defineModel({
  roles: ['user', 'root'],
  operatorRole: 'root',
  entities: [people, badges, notes, papers],
});
const root = { subject: 'root', roles: ['root'] };
let app: Awaited<ReturnType<typeof openAccessApp>>;

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
});

async function add(entity: string, values: object) {
  expect((await app.ask(root, 'POST', entity, values)).status).toBe(201);
}

test('a term of the own row follows each change that the process makes to the row, of an index with keys alone too', async () => {
  const cid = { subject: 'cid', roles: ['user'], claims: { sub: 'cid' } };
  const reads = async () => [
    (await app.ask(cid, 'GET', 'notes/north/1')).status,
    (await app.ask(cid, 'GET', 'notes/south/1')).status,
  ];
  for (const site of ['north', 'south']) await add('notes', { site, noteId: '1' });
  expect(await reads()).toEqual([404, 404]);
  await add('people', { personId: 'cid', site: 'north' });
  expect(await reads()).toEqual([200, 404]);
  expect((await app.ask(root, 'PATCH', 'people/cid/', { site: 'south' })).status).toBe(200);
  expect(await reads()).toEqual([404, 200]);
  expect((await app.ask(root, 'PUT', 'people/cid', { site: 'north' })).status).toBe(200);
  expect(await reads()).toEqual([200, 404]);
  const actions = [{ patch: { personId: 'cid', site: 'south' } }];
  expect((await app.ask(root, 'POST', 'people/batch', { actions })).status).toBe(200);
  expect(await reads()).toEqual([404, 200]);
  expect((await app.ask(root, 'DELETE', 'people/cid')).status).toBe(204);
  expect(await reads()).toEqual([404, 404]);
});

test('what a term has read of the own row is remembered', async () => {
  const dan = { subject: 'dan', roles: ['user'], claims: { sub: 'dan' } };
  await add('people', { personId: 'dan', site: 'east' });
  await add('notes', { site: 'east', noteId: '1' });
  const cost = async () => (await app.ask(dan, 'GET', 'notes/east/1')).headers.get('server-timing');
  expect(await cost()).toContain('"3 transactions');
  expect(await cost()).toContain('"1 transaction');
});

test('a repeated grant is of the claim by which a term finds the own row of another entity', async () => {
  await add('people', { personId: 'ann', site: 'north' });
  await add('badges', { email: 'a@north', site: 'north' });
  await add('badges', { email: 'a@south', site: 'south' });
  const ask = async (email?: string) => {
    const claims = { sub: 'ann', ...(email === undefined ? {} : { email }) };
    return app.ask({ subject: 'ann', roles: ['user'], claims }, 'POST', 'grants', { entity: 'papers', scope: 'own' });
  };
  const rows = (reply: Awaited<ReturnType<typeof ask>>) => new URLSearchParams(reply.body.token).get('srk');
  const [north, south] = [await ask('a@north'), await ask('a@south')];
  expect([north.status, south.status]).toEqual([201, 201]);
  expect(rows(north)).toBe('north_');
  expect(rows(south)).toBe('south_');
  expect((await ask()).status).toBe(403);
  expect((await ask('a@north')).body).toEqual(north.body);
});
