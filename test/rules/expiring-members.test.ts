import { expect, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, defineModel, interPartitionIndex, memberOf } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';

const HOUR = 3_600_000;
/** How long a process remembers memberships. */
const KEPT = 30_000;
const guests = defineEntity('guests', {
  schema: z.object({ groupId: z.string(), userId: z.string(), until: z.iso.datetime() }),
  table: 'guests',
  key: { partition: '{groupId}', row: 'guest_{userId}' },
  indexes: {
    userId: interPartitionIndex({
      table: 'guestsbyuser',
      partition: '{userId}',
      row: '{groupId}',
      copies: ['groupId', 'userId', 'until'],
    }),
  },
  expiry: { at: 'until' },
  access: { read: ['host'], write: { create: ['host', 'greeter'], update: ['host'], delete: ['host'] } },
});
const photos = defineEntity('photos', {
  schema: z.object({ groupId: z.string(), photoId: z.string() }),
  table: 'photos',
  key: { partition: '{groupId}', row: 'photo_{photoId}' },
  access: {
    read: ['host', { role: 'guest', where: { groupId: memberOf((): DeclaredEntity => guests, 'groupId') } }],
    write: ['host'],
  },
});
const model = defineModel({ roles: ['host', 'greeter', 'guest'], operatorRole: 'host', entities: [guests, photos] });

test('a membership ends with its entity, over HTTP, and can begin again', async () => {
  const clock = { ahead: 0 };
  const now = () => Date.now() + clock.ahead;
  const { ask } = await openAccessApp(import.meta.url, model, { now });
  const host = { subject: 'host', roles: ['host'] };
  const guest = { subject: 'gus', roles: ['guest'] };
  const membership = () => ({ groupId: 'g', userId: 'gus', until: new Date(now() + HOUR).toISOString() });
  const statuses = async () => [
    (await ask(guest, 'GET', 'photos/g/p')).status,
    (await ask(guest, 'GET', 'photos/g')).body.items.length,
    (await ask(host, 'GET', 'guests/g/gus')).status,
    (await ask(host, 'GET', 'guests/by/userId/gus')).body.items.length,
    (await ask(host, 'POST', 'query', { reads: { a: { range: 'guests', partition: { groupId: 'g' } } } })).body.reads.a
      .items.length,
    (await ask(host, 'GET', 'operations/scan/guests')).body.items?.length,
  ];
  await ask(host, 'POST', 'photos', { groupId: 'g', photoId: 'p' });
  expect((await ask(host, 'POST', 'guests', membership())).status).toBe(201);
  const present = await statuses();
  expect(present).toEqual([200, 1, 200, 1, 1, 1]);
  clock.ahead += HOUR + KEPT;
  expect(await statuses()).toEqual([404, 0, 404, 0, 0, 0]);
  expect((await ask(host, 'PATCH', 'guests/g/gus', { until: membership().until })).status).toBe(404);
  // A caller who may not delete.
  const greeter = { subject: 'gil', roles: ['greeter'] };
  expect((await ask(greeter, 'POST', 'guests', membership())).status).toBe(201);
  expect(await statuses()).toEqual(present);
});
