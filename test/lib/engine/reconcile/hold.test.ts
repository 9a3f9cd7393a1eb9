import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Hold } from '../../../../lib/define/engine.ts';
import { consumePoison } from '../../../../lib/engine/consume/consume.ts';
import {
  delayOf,
  handleMessage,
  listPoison,
  MAX_ATTEMPTS,
  type Message,
  POISON_TABLE,
} from '../../../../lib/engine/consume/poison.ts';
import { createEngine } from '../../../../lib/engine/engine.ts';
import { holdWork, sendWork } from '../../../../lib/engine/reconcile/hold.ts';
import { unavailable } from '../../../../lib/errors.ts';
import { createTable } from '../../../../lib/storage/provision.ts';
import { openStorage } from '../../../../lib/storage/storage.ts';
import { employees } from '../../../fixtures/model.ts';
import { testStorage } from '../../../storage.ts';

const HIDDEN_SECONDS = 3;
const timing = {
  commitWithinMs: 1_000,
  claimForMs: 1_500,
  hideIntentForSeconds: HIDDEN_SECONDS,
  settleWithinMs: 2_000,
};
const engine = createEngine(openStorage({ connectionString: testStorage(import.meta.url) }), { timing });
const log = { warn: () => undefined, error: () => undefined };
const work = { version: 1, intent: 'one', entity: 'employees', table: 'employees', items: [] };

beforeAll(() => createTable(engine.storage, POISON_TABLE));

let counter = 0;
/** Creates a queue for one test, so that tests wait for their hidden messages concurrently. */
async function openQueue() {
  counter += 1;
  const name = `work-${counter}`;
  const queue = engine.storage.queue(name);
  await queue.create();

  /** Receives a message as a host does: hidden for ten minutes, whatever happens to the host. */
  async function receive(): Promise<Message | undefined> {
    const { receivedMessageItems } = await queue.receiveMessages({ visibilityTimeout: 600 });
    const [message] = receivedMessageItems;
    if (!message) return undefined;
    const { messageId: id, dequeueCount: attempts, insertedOn, messageText } = message;
    return { queue: name, id, attempts, insertedAt: insertedOn.getTime(), body: JSON.parse(messageText) };
  }

  /** Returns the next message, which must become visible within `seconds`, and the elapsed milliseconds. */
  async function receiveWithin(seconds: number): Promise<{ message: Message; after: number }> {
    const since = Date.now();
    for (;;) {
      const message = await receive();
      if (message) return { message, after: Date.now() - since };
      if (Date.now() - since > seconds * 1_000) throw new Error('No message is visible.');
      await sleep(50);
    }
  }

  return {
    name,
    queue,
    receive,
    receiveWithin,
    send: (body: object) => sendWork(engine, name, body),
    count: async () => (await queue.getProperties()).approximateMessagesCount,
  };
}

const poison = async () => (await listPoison(engine, { limit: 100 })).items;
const fail = (error: Error) => async (take: () => Promise<Hold | undefined>) => {
  await take();
  throw error;
};

/** Returns the body without the reminder, which differs between copies. */
const bodyOf = ({ body }: Message) => {
  const { reminder: _, ...rest } = body as Record<string, unknown>;
  return rest;
};

describe.concurrent('work held by an instance that died', () => {
  test('is visible again once its reminder is, and the held message is then dropped', async () => {
    const { receiveWithin, send } = await openQueue();
    await send(work);
    const { message } = await receiveWithin(1);
    expect(await holdWork(engine, message)).toBeDefined();
    const { message: again, after } = await receiveWithin(HIDDEN_SECONDS + 5);
    expect(after).toBeGreaterThan(HIDDEN_SECONDS * 500);
    expect(bodyOf(again)).toMatchObject(work);
    const held = await holdWork(engine, again);
    expect(held).toBeDefined();
    // After ten minutes the host delivers the message that the dead instance held.
    expect(await holdWork(engine, message)).toBeUndefined();
    await held?.release();
    expect(await holdWork(engine, message)).toBeUndefined();
  });

  test('is visible again even if the instance dies before the work starts', async () => {
    const { receiveWithin, send } = await openQueue();
    await send(work);
    await receiveWithin(1);
    const { message } = await receiveWithin(HIDDEN_SECONDS + 5);
    expect(bodyOf(message)).toMatchObject(work);
  });

  test('is recorded after the usual number of attempts if it kills every instance', async () => {
    const { queue, receiveWithin } = await openQueue();
    await queue.sendMessage(JSON.stringify({ ...work, intent: 'deadly' }));
    for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { message } = await receiveWithin(HIDDEN_SECONDS + 5);
      expect(await holdWork(engine, message)).toBeDefined();
    }
    const { message } = await receiveWithin(HIDDEN_SECONDS + 5);
    await handleMessage(engine, message, log, fail(new Error('It fails.')));
    expect((await poison()).filter(({ text }) => text.includes('deadly'))).toHaveLength(1);
  });
});

test.concurrent('an extended hold excludes other consumers for as long as the work takes', async () => {
  const { receive, receiveWithin, send } = await openQueue();
  await send(work);
  const { message } = await receiveWithin(1);
  const held = await holdWork(engine, message);
  for (const until = Date.now() + 2 * HIDDEN_SECONDS * 1_000; Date.now() < until; await sleep(100)) {
    expect((await held?.keep())?.aborted).toBe(false);
    expect(await receive()).toBeUndefined();
  }
  await held?.release();
  await sleep((HIDDEN_SECONDS + 1) * 1_000);
  expect(await receive()).toBeUndefined();
});

test.concurrent('a hold that another consumer took over is detected before the next write', async () => {
  const { receiveWithin, send } = await openQueue();
  await send(work);
  const { message } = await receiveWithin(1);
  const stalled = await holdWork(engine, message);
  const { message: reminder } = await receiveWithin(HIDDEN_SECONDS + 5);
  expect(await holdWork(engine, reminder)).toBeDefined();
  await expect(stalled?.keep()).rejects.toMatchObject({ code: 'busy' });
});

test.concurrent('a message that fails on its own is retried soon and recorded once after its last attempt', async () => {
  const { receiveWithin, send } = await openQueue();
  await send({ ...work, intent: 'broken' });
  for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { message } = await receiveWithin(10);
    await handleMessage(engine, message, log, fail(new Error('It fails.')));
  }
  const { message } = await receiveWithin(10);
  await handleMessage(engine, message, log, fail(new Error('It fails.')));
  const found = (await poison()).filter(({ text }) => text.includes('broken'));
  expect(found).toMatchObject([{ attempts: MAX_ATTEMPTS, text: JSON.stringify({ ...work, intent: 'broken' }) }]);
});

describe('a message that fails because storage is unavailable', () => {
  const outage = unavailable('Storage does not answer now.', undefined);

  test('is postponed without limit and without counting an attempt', async () => {
    const { count, queue, receiveWithin, send } = await openQueue();
    let body: object = work;
    for (let wait = 1; wait <= 3 * MAX_ATTEMPTS; wait += 1) {
      await queue.clearMessages();
      await send(body);
      const { message } = await receiveWithin(1);
      await handleMessage(engine, message, log, fail(outage));
      // The message itself is deleted; a copy and its reminder remain.
      expect(await count()).toBe(3);
      body = { ...work, history: { id: 'outage', since: Date.now(), attempts: 0, waits: wait } };
    }
    expect((await poison()).filter(({ id }) => id.includes('outage'))).toEqual([]);
  });

  test('is postponed with increasing delays of up to some minutes, with jitter', () => {
    const delays = Array.from({ length: 12 }, (_, waits) => delayOf(30, waits));
    expect(delays[0]).toBeGreaterThanOrEqual(30);
    expect(delays[2]).toBeGreaterThanOrEqual(120);
    expect(Math.max(...delays)).toBeLessThanOrEqual(450);
    expect(new Set(Array.from({ length: 50 }, () => delayOf(300, 9))).size).toBeGreaterThan(10);
  });

  test('is recorded after a day', async () => {
    const { receiveWithin, send } = await openQueue();
    const since = Date.now() - 25 * 3_600_000;
    await send({ ...work, history: { id: 'old', since, attempts: 0, waits: 300 } });
    const { message } = await receiveWithin(1);
    await handleMessage(engine, message, log, fail(outage));
    expect((await poison()).filter(({ id }) => id.endsWith('_old'))).toHaveLength(1);
  });
});

describe('a message that the host moved to its poison queue', () => {
  const moved = (name: string, body: unknown): Message => ({
    queue: `${name}-poison`,
    id: `moved-${JSON.stringify(body).length}`,
    attempts: 1,
    insertedAt: Date.now(),
    body,
  });
  const consumer = { engine, entities: [employees], log };

  test('returns to its queue, because nothing shows that it can never succeed', async () => {
    const { name, receiveWithin } = await openQueue();
    await consumePoison(consumer, moved(name, { ...work, intent: 'back' }));
    const { message } = await receiveWithin(1);
    expect(bodyOf(message)).toMatchObject({ ...work, intent: 'back', history: { attempts: 0, waits: 1 } });
    expect((await poison()).filter(({ text }) => text.includes('back'))).toEqual([]);
  });

  test.each([
    ['is not JSON', 'nonsense'],
    ['belongs to another deployment', { ...work, entity: 'others' }],
    ['is older than a day', { ...work, history: { id: 'aged', since: 1, attempts: 0, waits: 9 } }],
  ])('is recorded if it %s', async (_, body) => {
    const { count, name } = await openQueue();
    const before = (await poison()).length;
    await consumePoison(consumer, moved(name, body));
    expect(await poison()).toHaveLength(before + 1);
    expect(await count()).toBe(0);
  });
});
