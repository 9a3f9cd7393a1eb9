import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, total } from '../../lib/define.ts';
import { type Ask, openAccessApp } from '../access-app.ts';

/** Fields of real files have names such as `last_name`. */

const people = defineEntity('people', {
  schema: z.object({
    home_city: z.string(),
    person_id: z.int32().min(0),
    last_name: z.string(),
    born_on: z.iso.date(),
    spoken_tongues_: z.array(z.string()).default([]),
  }),
  table: 'people',
  key: { partition: '{home_city}', row: '{person_id:4}' },
  indexes: {
    lastName: interPartitionIndex({
      table: 'peoplebyname',
      partition: '{last_name#}',
      row: '{last_name}_{home_city}_{person_id}',
    }),
    newest: interPartitionIndex({
      table: 'newestpeople',
      partition: '{home_city}',
      row: '{born_on~}_{person_id:4}',
    }),
    tongue: interPartitionIndex({ table: 'tongues', partition: '{spoken_tongues_[]}', row: '{home_city}_{person_id}' }),
  },
  totals: { born: total({ table: 'peoplebyyear', partition: '{home_city}', row: '{born_on.year}' }) },
  access: { read: ['member'], write: ['member'] },
});

let ask: Ask;
const member = { roles: ['member'] };
beforeAll(async () => {
  const model = defineModel({ roles: ['member', 'operator'], operatorRole: 'operator', entities: [people] });
  ({ ask } = await openAccessApp(import.meta.url, model));
});

test('a template has fields with an underscore in each form', async () => {
  const one = { home_city: 'Rome', person_id: 7, last_name: 'Rossi_', born_on: '1990-02-01', spoken_tongues_: ['it'] };
  expect((await ask(member, 'POST', 'people', one)).status).toBe(201);
  expect((await ask(member, 'GET', 'people/Rome/7')).body).toEqual(one);
  for (const path of ['lastName/Rossi_', 'newest/Rome', 'tongue/it'])
    expect((await ask(member, 'GET', `people/by/${path}`)).body, path).toEqual({ items: [one] });
  expect((await ask(member, 'GET', 'people/totals/born/Rome/1990')).body).toMatchObject({ count: 1 });
});

test.each([
  ['transact', (remove: object) => ({ people: remove })],
  ['people/batch', (remove: object) => remove],
])('more than 100 actions are too large: %s', async (path, toAction) => {
  const actions = Array.from({ length: 101 }, (_, person_id) => toAction({ delete: { home_city: 'Oslo', person_id } }));
  expect(await ask(member, 'POST', path, { actions })).toMatchObject({
    status: 413,
    body: { code: 'too-large', field: 'actions', accepted: 'at most 100 actions' },
  });
});
