import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/define.ts';
import { createTestStore } from '../../lib/testing/index.ts';
import { openAccessApp } from '../access-app.ts';
import { httpDoor } from '../kit/http.ts';
import { testApp, testInvocation, testRequest } from '../lib/http/request.ts';

const invitations = defineEntity('invitations', {
  schema: z.object({ groupId: z.string(), email: z.string(), note: z.string().optional() }),
  table: 'invitations',
  key: { partition: '{groupId}', row: 'invitation_{email}' },
  access: { read: ['user', 'reader', 'auditor'], write: ['user', 'auditor'] },
});
const model = defineModel({
  roles: ['user', 'reader', 'auditor'],
  operatorRole: 'auditor',
  limits: [
    { role: 'user', entity: 'invitations', action: 'create', requests: 3, per: 'day' },
    { role: 'reader', action: 'read', requests: 4, per: 'minute' },
    { role: 'reader', action: 'write', requests: 1, per: 'minute' },
  ],
  entities: [invitations],
});

const clock = { now: Date.parse('2026-11-20T12:00:00Z') };
const app = await openAccessApp(import.meta.url, model, { now: () => clock.now });
const as = (subject: string, ...roles: string[]) => ({ subject, roles });
const invite = (email: string) => ({ groupId: 'g1', email });

test('rejects the fourth create of a day, by whichever route, with a problem that names the limit', async () => {
  const ann = as('ann', 'user');
  const statuses = [
    await app.ask(ann, 'POST', 'invitations', invite('1')),
    // Rejected before it is admitted, so not counted.
    await app.ask(ann, 'POST', 'invitations?mine=true', invite('1')),
    await app.ask(ann, 'PUT', 'invitations/g1/2', invite('2')),
    await app.ask(ann, 'POST', 'invitations/batch', { actions: [{ create: invite('3') }, { delete: invite('2') }] }),
    await app.ask(ann, 'PATCH', 'invitations/g1/3', { note: 'changes are not counted' }),
    await app.ask(ann, 'GET', 'invitations/g1'),
  ].map(({ status }) => status);
  expect(statuses).toEqual([201, 400, 200, 200, 200, 200]);
  for (const refused of [
    await app.ask(ann, 'POST', 'invitations', invite('4')),
    await app.ask(ann, 'PUT', 'invitations/g1/4', invite('4')),
    await app.ask(ann, 'POST', 'invitations/batch', { actions: [{ create: invite('4') }] }),
    await app.ask(ann, 'POST', 'invitations?explain=true', invite('4')),
  ]) {
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe(String(12 * 3_600));
    expect(refused.headers.get('server-timing')).toContain('desc="0 transactions"');
    expect(refused.body).toMatchObject({
      code: 'too-many-requests',
      detail: 'The role "user" has a limit of 3 creates of invitations per day, which is reached.',
      accepted: '3 creates of invitations per day',
    });
  }
  expect((await app.ask(as('bob', 'user'), 'POST', 'invitations', invite('4'))).status).toBe(201);
  expect((await app.ask(as('ann', 'user', 'auditor'), 'POST', 'invitations', invite('5'))).status).toBe(201);
  clock.now += 86_400_000;
  expect((await app.ask(ann, 'POST', 'invitations', invite('6'))).status).toBe(201);
});

test('counts each read of a query, and a function of the app', async () => {
  const cid = as('cid', 'reader');
  const reads = {
    a: { range: 'invitations', partition: { groupId: 'g1' } },
    b: { get: 'invitations', key: invite('1') },
  };
  expect((await app.ask(cid, 'POST', 'query', { reads })).status).toBe(200);
  expect((await app.ask(cid, 'GET', 'invitations/g1')).status).toBe(200);
  const { body } = await app.ask(cid, 'POST', 'query', { reads });
  expect(JSON.stringify(body)).toContain('too-many-requests');
  const over = { engine: app.engine, limits: model.limits, authenticate: async () => ({ ...cid, claims: {} }) };
  const handler = httpDoor.createHandler(
    () => testApp(import.meta.url, over),
    { roles: ['reader'] },
    () => ({ status: 204 }),
  );
  const call = async () => (await handler(testRequest(), testInvocation().invocation)).status;
  expect([await call(), await call()]).toEqual([204, 429]);
});

test('the app itself is not limited, and the store of a caller counts by entity', async () => {
  const { store } = await createTestStore(model);
  for (let index = 0; index < 10; index += 1) await store.invitations.create(invite(`app${index}`));
  const mine = store.as({ ...as('dan', 'user'), claims: {} });
  for (let index = 0; index < 3; index += 1) await mine.invitations.create(invite(`dan${index}`));
  await expect(mine.invitations.create(invite('dan4'))).rejects.toMatchObject({ code: 'too-many-requests' });
});

test('rejects a limit of something that the model does not have', () => {
  const limits = [
    { role: 'usr', requests: 1, per: 'day' },
    { role: 'user', entity: 'invitation', requests: 1, per: 'day' },
    { role: 'user', action: 'read', requests: 1, per: 'day' },
    { role: 'user', action: 'read', requests: 2, per: 'day' },
  ];
  const define = (given: unknown) => () =>
    defineModel({ roles: ['user'], operatorRole: 'user', entities: [], limits: given as [] });
  expect(define(limits)).toThrow(
    /names the role "usr".*\n.*the entity "invitation".*\nThe role "user" has two limits of the same entity and action per day/,
  );
  expect(define([{ role: 'user', requests: 0, per: 'week', acton: 'read' }])).toThrow(/requests.*\n.*per.*\n.*acton/s);
});
