import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { type Ask, openAccessApp } from '../access-app.ts';

/** Each call of a slow account delays a request by its latency, unless the call is sent beside others: so many follow one another. */

const things = defineEntity('things', {
  schema: z.object({ a: z.string(), b: z.string() }),
  table: 'things',
  key: { partition: '{a}', row: '{a}' },
  indexes: {
    b: interPartitionIndex({ table: 'thingsbyb', partition: '{b}', row: '{a}' }),
    unique: interPartitionIndex({ table: 'thingsbyu', partition: '{b#}', row: '{b}', unique: true }),
  },
  access: { read: ['member'], write: ['member'] },
});
const model = defineModel({ roles: ['member', 'operator'], operatorRole: 'operator', entities: [things] });

/** No call within so many turns of the event loop, five milliseconds each, depends on one that has already returned. */
const QUIET_TURNS = 30;
const TURN_MS = 5;
let rounds = 0;
let isSlow = false;
const held: (() => void)[] = [];
let inProgress = 0;
let quietTurns = 0;
const network = createDefaultHttpClient();
/** Lets calls pass together when no more of them come. */
const slow: HttpClient = {
  async sendRequest(request) {
    if (isSlow) {
      quietTurns = 0;
      await new Promise<void>((resolve) => held.push(resolve));
    }
    inProgress += 1;
    try {
      return await network.sendRequest(request);
    } finally {
      inProgress -= 1;
      quietTurns = 0;
    }
  },
};
const turns = setInterval(() => {
  if (held.length === 0 || inProgress > 0) return;
  quietTurns += 1;
  if (quietTurns < QUIET_TURNS) return;
  rounds += 1;
  for (const pass of held.splice(0)) pass();
}, TURN_MS);
afterAll(() => clearInterval(turns));

let ask: Ask;
beforeAll(async () => {
  ({ ask } = await openAccessApp(import.meta.url, model, { httpClient: slow }));
  expect((await ask({ roles: ['member'] }, 'POST', 'things', { a: 'first', b: 'first' })).status).toBe(201);
  isSlow = true;
});

test.each<[Parameters<Ask>[1], string, object | undefined, number]>([
  ['POST', 'things', { a: 'x', b: '1' }, 6],
  ['GET', 'things/x', undefined, 1],
  ['GET', 'things/by/b/1', undefined, 1],
  ['PATCH', 'things/x', { b: '2' }, 9],
  ['DELETE', 'things/x', undefined, 9],
])('%s %s waits for so many calls one after another', { tags: ['slow'] }, async (method, path, body, most) => {
  rounds = 0;
  expect((await ask({ roles: ['member'] }, method, path, body)).status).toBeLessThan(300);
  expect(rounds).toBeLessThanOrEqual(most);
  expect(rounds).toBeGreaterThan(0);
});
