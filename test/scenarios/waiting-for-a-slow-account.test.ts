import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { interPartitionIndex } from '../../lib/define/declaration/indexes.ts';
import { defineEntity } from '../../lib/define/define-entity.ts';
import { defineModel } from '../../lib/define-model.ts';
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

/** No further call within this time depends on one that has already returned. */
const QUIET_MS = 150;
let rounds = 0;
let isSlow = false;
let held: (() => void)[] = [];
let timer: NodeJS.Timeout | undefined;
const network = createDefaultHttpClient();
/** Lets calls pass together when no more of them come. */
const slow: HttpClient = {
  async sendRequest(request) {
    if (isSlow)
      await new Promise<void>((resolve) => {
        held.push(resolve);
        clearTimeout(timer);
        timer = setTimeout(() => {
          rounds += 1;
          const passing = held;
          held = [];
          for (const pass of passing) pass();
        }, QUIET_MS);
      });
    return network.sendRequest(request);
  },
};

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
])('%s %s waits for so many calls one after another', async (method, path, body, most) => {
  rounds = 0;
  expect((await ask({ roles: ['member'] }, method, path, body)).status).toBeLessThan(300);
  expect(rounds).toBeLessThanOrEqual(most);
  expect(rounds).toBeGreaterThan(0);
});
