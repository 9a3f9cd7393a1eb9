import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, own } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';

/** A caller's own entity may lack the field that a rule compares, and so may the rows. Both are without a value, which is no match. */

const people = defineEntity('people', {
  schema: z.object({ site: z.string(), personId: z.string(), email: z.email(), team: z.string().optional() }),
  table: 'people',
  key: { partition: '{site}', row: 'person_{personId}' },
  indexes: {
    email: interPartitionIndex({ table: 'peoplebyemail', partition: '{email}', row: 'person', unique: true }),
  },
  access: { read: ['chief'], write: ['chief'], own: { claim: 'email', index: 'email', verifiedBy: {} } },
});
const tasks = defineEntity('tasks', {
  schema: z.object({ board: z.string(), taskId: z.string(), team: z.string().optional() }),
  table: 'tasks',
  key: { partition: '{board}', row: 'task_{taskId}' },
  access: {
    read: ['chief', { role: 'user', where: { team: own(people, 'team') }, lists: 'filtered' }],
    write: ['chief'],
  },
});
const model = defineModel({
  roles: ['chief', 'user', 'operator'],
  operatorRole: 'operator',
  entities: [people, tasks],
});

test('a caller without a value reaches no row without one', async () => {
  const app = await openAccessApp(import.meta.url, model);
  const chief = { subject: 'chief', roles: ['chief'] };
  const user = (email: string) => ({ subject: email, roles: ['user'], claims: { email } });
  const [ann, bob] = ['ann@contoso.com', 'bob@contoso.com'];
  for (const person of [
    { personId: '1', email: ann },
    { personId: '2', email: bob, team: 'red' },
  ])
    expect((await app.ask(chief, 'POST', 'people', { site: 's', ...person })).status).toBe(201);
  for (const task of [{ taskId: '1' }, { taskId: '2', team: 'red' }])
    expect((await app.ask(chief, 'POST', 'tasks', { board: 'b', ...task })).status).toBe(201);
  const reached = async (email: string) =>
    Promise.all(['1', '2'].map(async (id) => (await app.ask(user(email), 'GET', `tasks/b/${id}`)).status));
  const listed = async (email: string) =>
    (await app.ask(user(email), 'GET', 'tasks/b')).body.items.map(({ taskId }: { taskId: string }) => taskId);
  expect(await reached(bob)).toEqual([404, 200]);
  expect(await listed(bob)).toEqual(['2']);
  expect(await reached(ann)).toEqual([404, 404]);
  expect(await listed(ann)).toEqual([]);
});
