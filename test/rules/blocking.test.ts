import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/index.ts';
import { signToken, startIdentityProvider } from '../../local/instance/identity-provider.ts';
import { openAccessApp } from '../access-app.ts';
import { httpDoor } from '../kit/http.ts';
import { openApp } from '../open-app.ts';

/** An operator blocks a user whose token is still valid. */

const notes = defineEntity('notes', {
  schema: z.object({ noteId: z.string() }),
  table: 'notes',
  key: { partition: '{noteId}', row: 'note' },
  access: { read: ['user'], write: ['user'] },
});
const declaration = { roles: ['user', 'operator'], operatorRole: 'operator', entities: [notes] } as const;
const model = defineModel({ ...declaration, blocksUsers: true });

let folder: string;
let provider: Awaited<ReturnType<typeof startIdentityProvider>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-blocking-'));
  provider = await startIdentityProvider({ folder, port: 0 });
});
afterAll(async () => {
  await provider.stop();
  await rm(folder, { recursive: true, force: true });
});
const tokenOf = async (sub: string, role: string) =>
  `Bearer ${await signToken({ folder, issuer: provider.issuer, audience: provider.audience, role, claims: { sub } })}`;

test('every door rejects a blocked user until the operator ends it', async () => {
  const { issuer, audience, jwksUri } = provider;
  const rowkey = openApp(import.meta.url, model, { auth: { issuer, audience, jwksUri } });
  await rowkey.provision();
  const app = await openAccessApp(import.meta.url, model, {
    authenticate: rowkey.authenticate,
    storage: (await rowkey.runtime.readyEngine(console)).storage,
  });
  const [ann, operator] = [await tokenOf('ann', 'user'), await tokenOf('op', 'operator')];
  const ask = (authorization: string, method: 'GET' | 'POST', path: string, body?: unknown) =>
    app.ask({}, method, path, body, { authorization });
  expect((await ask(ann, 'POST', 'notes', { noteId: '1' })).status).toBe(201);
  expect((await ask(ann, 'POST', 'operations/users/block', { subject: 'op' })).status).toBe(403);
  expect((await ask(operator, 'POST', 'operations/users/block', { subject: 'ann' })).status).toBe(204);
  const doors = httpDoor.createRoutes(model).filter(({ roles }) => roles);
  for (const { method, path } of doors) {
    const body = method === 'GET' ? undefined : {};
    const refused = await app.ask({}, method, path.replaceAll(/\{\w+\}/g, '1'), body, { authorization: ann });
    expect([path, refused.status, refused.body.detail]).toEqual([path, 403, 'The user is blocked.']);
  }
  await expect(rowkey.authenticate(ann)).rejects.toMatchObject({ code: 'forbidden' });
  const list = await ask(operator, 'GET', 'operations/users/blocked');
  expect(list.body.items).toEqual([{ subject: 'ann', blockedAt: expect.any(String) }]);
  expect((await ask(operator, 'POST', 'operations/users/unblock', { subject: 'ann' })).status).toBe(204);
  expect((await ask(ann, 'GET', 'notes/1')).status).toBe(200);
});

test('an operator cannot lock itself out', async () => {
  const app = await openAccessApp(import.meta.url, model);
  const block = (subject: string) =>
    app.ask({ subject: 'op', roles: ['operator'] }, 'POST', 'operations/users/block', { subject });
  expect(await block('op')).toMatchObject({ status: 400, body: { field: 'subject', accepted: 'another user' } });
  expect((await block('')).status).toBe(400);
});

test('an operator who asks why a blocked user may do nothing is told so', async () => {
  const app = await openAccessApp(import.meta.url, model);
  const operator = { subject: 'op', roles: ['operator', 'user'] };
  await app.ask(operator, 'POST', 'notes', { noteId: '2' });
  const askWhy = () =>
    app.ask(operator, 'POST', 'operations/why', {
      entity: 'notes',
      key: { noteId: '2' },
      caller: { subject: 'fay', roles: ['user'] },
    });
  expect((await askWhy()).body.read).toMatchObject({ allowed: true });
  await app.ask(operator, 'POST', 'operations/users/block', { subject: 'fay' });
  expect((await askWhy()).body.read).toEqual({ allowed: false, refused: 'The user is blocked.', alternatives: [] });
});

test('a block is in the audit log', async () => {
  const app = await openAccessApp(import.meta.url, model);
  const operator = { subject: 'op', roles: ['operator', 'user'] };
  for (const what of ['block', 'unblock'])
    await app.ask(operator, 'POST', `operations/users/${what}`, { subject: 'eve' });
  const [from, to] = [-60_000, 60_000].map((by) => new Date(Date.now() + by).toISOString());
  const { body } = await app.ask(operator, 'GET', `operations/audit?from=${from}&to=${to}`);
  const changes = body.items.filter(({ subject }: { subject: string }) => subject === 'eve');
  expect(changes).toMatchObject([
    { operation: 'block', by: 'op', entity: 'users' },
    { operation: 'unblock', by: 'op', entity: 'users' },
  ]);
});

test('a model that does not say so has no such routes', () => {
  const names = httpDoor.createRoutes(defineModel(declaration)).map(({ path }) => path);
  expect(names.filter((path) => path.includes('users'))).toEqual([]);
});
