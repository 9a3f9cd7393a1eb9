import { beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, defineModel, interPartitionIndex, memberOf } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';
import { interruptedHttpClient } from '../faulty-http-client.ts';

/** How long a member whom another process has removed can still read and write. */

const members = defineEntity('members', {
  schema: z.object({ groupId: z.string(), userId: z.string() }),
  table: 'members',
  key: { partition: '{groupId}', row: 'member_{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{groupId}' }) },
  access: { read: ['root'], write: ['root'] },
});
const inGroup = { role: 'user', where: { groupId: memberOf((): DeclaredEntity => members, 'groupId') } } as const;
const notes = defineEntity('notes', {
  schema: z.object({ groupId: z.string(), noteId: z.string(), text: z.string() }),
  table: 'notes',
  key: { partition: '{groupId}', row: 'note_{noteId}' },
  access: { read: ['root', inGroup], write: ['root', inGroup] },
});
const declaration = { roles: ['user', 'root'], operatorRole: 'root', entities: [members, notes] } as const;
const SECONDS = 100;
const model = defineModel({ ...declaration, rulesMaxAge: SECONDS });

type App = Awaited<ReturnType<typeof openAccessApp>>;
const ann = { subject: 'ann', roles: ['user'] };
const root = { subject: 'root', roles: ['root'] };
const clock = { ahead: 0 };
const now = () => Date.now() + clock.ahead;
const isWrite = ({ method, url }: { method: string; url: string }) => method !== 'GET' && /notes|\$batch/.test(url);

/** Two processes, each with a memory of its own. */
let one: App;
let other: App;
let groupId = '';
let groups = 0;
beforeAll(async () => {
  one = await openAccessApp(import.meta.url, model, { now });
  other = await openAccessApp(import.meta.url, model, { now });
});
beforeEach(async () => {
  groups += 1;
  groupId = `g${groups}`;
  expect((await one.ask(root, 'POST', 'members', { groupId, userId: 'ann' })).status).toBe(201);
  expect((await one.ask(root, 'POST', 'notes', { groupId, noteId: '1', text: 'a' })).status).toBe(201);
});

const read = async (app: App) => (await app.ask(ann, 'GET', `notes/${groupId}/1`)).status;
const write = async (app: App, text = 'b') => (await app.ask(ann, 'PATCH', `notes/${groupId}/1`, { text })).status;
const revoke = async (app: App) => expect((await app.ask(root, 'DELETE', `members/${groupId}/ann`)).status).toBe(204);
const stored = async () => (await one.ask(root, 'GET', `notes/${groupId}/1`)).body.text;

test('a member is remembered for the declared time after another process removed it, and no longer', async () => {
  const before = now();
  expect([await read(one), await read(other)]).toEqual([200, 200]);
  const after = now();
  await revoke(other);
  // The process that removes the member knows at once.
  expect([await read(other), await write(other)]).toEqual([404, 404]);
  expect([await read(one), await write(one)]).toEqual([200, 200]);
  clock.ahead += before + (SECONDS - 50) * 1_000 - now();
  expect([await read(one), await write(one, 'last')]).toEqual([200, 200]);
  clock.ahead += after + SECONDS * 1_000 - now();
  expect([await read(one), await write(one, 'late')]).toEqual([404, 404]);
  expect(await stored()).toBe('last');
});

test('a write under way when the member is removed is not undone, and the next one is rejected in time', async () => {
  let isUnderWay = false;
  const httpClient = interruptedHttpClient(
    (request) => isUnderWay && isWrite(request),
    () => revoke(other),
  );
  const slow = await openAccessApp(import.meta.url, model, { now, httpClient });
  expect(await read(slow)).toBe(200);
  isUnderWay = true;
  expect(await write(slow, 'under way')).toBe(200);
  expect(await read(other)).toBe(404);
  expect(await stored()).toBe('under way');
  clock.ahead += SECONDS * 1_000;
  expect(await write(slow, 'late')).toBe(404);
  expect(await stored()).toBe('under way');
});

test('the time is 30 seconds unless the model declares another one', () => {
  expect(defineModel(declaration).rulesMaxAge).toBe(30);
  for (const rulesMaxAge of [0, 3_601, 1.5])
    expect(() => defineModel({ ...declaration, rulesMaxAge })).toThrow(/"rulesMaxAge"/);
});
