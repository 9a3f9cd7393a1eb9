import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpClient } from '@azure/core-rest-pipeline';
import { beforeAll, describe, expect, test } from 'vitest';
import { holdWork, type Message, sendWork, unlessUnavailable } from '../../../../lib/engine/reconcile/hold.ts';
import { httpClient, showMessages } from '../../../../local/walk/known-messages.ts';
import { employees } from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineConsume, engineCore } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { log } from '../../../silent-log.ts';
import { testStorage } from '../../../storage.ts';
import { LONG_HOLDS } from '../../../world.ts';

/** The seconds for which each message of a queue was hidden when it was sent, by the name of the queue. */
const hiddenFor = new Map<string, number[]>();
const recordingClient: HttpClient = {
  sendRequest(request) {
    const { pathname, searchParams } = new URL(request.url);
    const [, queue] = /\/([\w-]+)\/messages$/.exec(pathname) ?? [];
    if (queue && request.method === 'POST')
      hiddenFor.set(queue, [...(hiddenFor.get(queue) ?? []), Number(searchParams.get('visibilitytimeout'))]);
    return httpClient.sendRequest(request);
  },
};
const storage = storageAccounts.openStorage({
  connectionString: testStorage(import.meta.url),
  httpClient: recordingClient,
});
/** Hides reminders for longer than a test takes. A test makes them visible, as if their time had passed. */
const engine = engineCore.createEngine(storage, { timing: LONG_HOLDS });
/** Hides reminders for seconds, with enough time for a busy machine to renew a hold. */
const HIDDEN_SECONDS = 10;
const quickTiming = {
  commitWithinMs: 4_000,
  claimForMs: 6_000,
  hideIntentForSeconds: HIDDEN_SECONDS,
  settleWithinMs: 8_000,
};
const quick = engineCore.createEngine(storage, { timing: quickTiming });
const work = { version: 1, intent: 'one', entity: 'employees', table: 'employees', items: [] };

beforeAll(() => storageTables.createTable(engine.storage, engineConsume.POISON_TABLE));

let counter = 0;
/** Creates a queue for one test, so that tests wait for their hidden messages concurrently. */
async function openQueue() {
  counter += 1;
  const name = `work-${counter}`;
  const queue = engine.storage.queue(name);
  await queue.create();

  /** Receives a message as a host does that then dies: the host would show the message after ten minutes. */
  async function receive(): Promise<Message | undefined> {
    const { receivedMessageItems } = await queue.receiveMessages({ visibilityTimeout: 600 });
    const [message] = receivedMessageItems;
    if (!message) return undefined;
    const { messageId: id, popReceipt, dequeueCount: attempts, insertedOn, messageText } = message;
    await queue.deleteMessage(id, popReceipt);
    return { queue: name, id, attempts, insertedAt: insertedOn.getTime(), body: JSON.parse(messageText) };
  }

  /** Waits for the next visible message. */
  async function next(): Promise<Message> {
    for (;;) {
      const message = await receive();
      if (message) return message;
      await sleep(50);
    }
  }

  return {
    name,
    queue,
    receive,
    next,
    send: (body: object, by = engine) => sendWork(by, name, body),
    show: () => showMessages(queue),
    count: async () => (await queue.getProperties()).approximateMessagesCount,
  };
}

const poison = async () => (await engineConsume.listPoison(engine, { limit: 100 })).items;
const fail = (error: Error) => async (take: () => Promise<Internal['Hold'] | undefined>) => {
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
    const { next, receive, send, show } = await openQueue();
    await send(work);
    const message = await next();
    expect(await holdWork(engine, message)).toBeDefined();
    expect(await receive()).toBeUndefined();
    await show();
    const again = await next();
    expect(bodyOf(again)).toMatchObject(work);
    const held = await holdWork(engine, again);
    expect(held).toBeDefined();
    // After ten minutes the host delivers the message that the dead instance held.
    const late = { ...message, attempts: 2 };
    expect(await holdWork(engine, late)).toBeUndefined();
    await held?.release();
    expect(await holdWork(engine, late)).toBeUndefined();
  });

  test('is visible again by itself even if the instance dies before the work starts', { tags: ['slow'] }, async () => {
    const { next, send, count } = await openQueue();
    await send(work, quick);
    for (const _ of ['the message', 'the reminder']) expect(bodyOf(await next())).toMatchObject(work);
    expect(await count()).toBe(0);
  });

  test('is recorded after the usual number of attempts if it kills every instance', async () => {
    const { next, queue, show } = await openQueue();
    await queue.sendMessage(JSON.stringify({ ...work, intent: 'deadly' }));
    for (let attempt = 1; attempt < engineConsume.MAX_ATTEMPTS; attempt += 1) {
      expect(await holdWork(engine, await next())).toBeDefined();
      await show();
    }
    await engineConsume.handleMessage(engine, await next(), log, fail(new Error('It fails.')));
    expect((await poison()).filter(({ text }) => text.includes('deadly'))).toHaveLength(1);
  });
});

test.concurrent('an extended hold excludes other consumers for as long as the work takes', async () => {
  const { next, receive, send, show } = await openQueue();
  await send(work, quick);
  const held = await holdWork(quick, await next());
  for (const until = Date.now() + 1.2 * HIDDEN_SECONDS * 1_000; Date.now() < until; await sleep(100)) {
    expect((await held?.keep())?.aborted).toBe(false);
    expect(await receive()).toBeUndefined();
  }
  await held?.release();
  await show();
  expect(await receive()).toBeUndefined();
});

test.concurrent('a hold that another consumer took over is detected before the next write', async () => {
  const { count, next, send, show } = await openQueue();
  let ahead = 0;
  const stalling = { ...engine, now: () => Date.now() + ahead };
  await send(work);
  const stalled = await holdWork(stalling, await next());
  await show();
  expect(await holdWork(engine, await next())).toBeDefined();
  ahead = LONG_HOLDS.settleWithinMs;
  await expect(stalled?.keep()).rejects.toMatchObject({ code: 'busy' });
  // The message belongs to the other consumer.
  const before = await count();
  expect(await stalled?.putOff({ id: 'lost', since: 1, attempts: 1, waits: 0 }, 0)).toBe(false);
  await stalled?.release();
  expect(await count()).toBe(before);
});

test.concurrent('a message that fails on its own is retried soon and recorded once after its last attempt', {
  tags: ['slow'],
}, async () => {
  const { name, next, send } = await openQueue();
  await send({ ...work, intent: 'broken' });
  for (let attempt = 1; attempt <= engineConsume.MAX_ATTEMPTS; attempt += 1)
    await engineConsume.handleMessage(engine, await next(), log, fail(new Error('It fails.')));
  // The first two are the reminder and the message; then a message for each of the other attempts.
  const retried = Array(engineConsume.MAX_ATTEMPTS - 1).fill(5);
  expect(hiddenFor.get(name)).toEqual([LONG_HOLDS.hideIntentForSeconds, 0, ...retried]);
  const found = (await poison()).filter(({ text }) => text.includes('broken'));
  expect(found).toMatchObject([
    { attempts: engineConsume.MAX_ATTEMPTS, text: JSON.stringify({ ...work, intent: 'broken' }) },
  ]);
});

describe('a message that fails because storage is unavailable', () => {
  const outage = baseValues.unavailable('Storage does not answer now.', undefined);

  test('is postponed without limit and without counting an attempt', async () => {
    const { count, queue, next, send } = await openQueue();
    let body: object = work;
    for (let wait = 1; wait <= 3 * engineConsume.MAX_ATTEMPTS; wait += 1) {
      await queue.clearMessages();
      await send(body);
      await engineConsume.handleMessage(engine, await next(), log, fail(outage));
      // A copy of the message, and its reminder.
      expect(await count()).toBe(2);
      body = { ...work, history: { id: 'outage', since: Date.now(), attempts: 0, waits: wait } };
    }
    expect((await poison()).filter(({ id }) => id.includes('outage'))).toEqual([]);
  });

  test('is postponed with increasing delays of up to some minutes, with jitter', () => {
    const delays = Array.from({ length: 12 }, (_, waits) => engineConsume.delayOf(30, waits));
    expect(delays[0]).toBeGreaterThanOrEqual(30);
    expect(delays[2]).toBeGreaterThanOrEqual(120);
    expect(Math.max(...delays)).toBeLessThanOrEqual(450);
    expect(new Set(Array.from({ length: 50 }, () => engineConsume.delayOf(300, 9))).size).toBeGreaterThan(10);
  });

  test('is recorded after a day', async () => {
    const { next, send } = await openQueue();
    const since = Date.now() - 25 * 3_600_000;
    await send({ ...work, history: { id: 'old', since, attempts: 0, waits: 300 } });
    await engineConsume.handleMessage(engine, await next(), log, fail(outage));
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
    const { name, next } = await openQueue();
    await engineConsume.consumePoison(consumer, moved(name, { ...work, intent: 'back' }));
    expect(bodyOf(await next())).toMatchObject({ ...work, intent: 'back', history: { attempts: 0, waits: 1 } });
    expect((await poison()).filter(({ text }) => text.includes('back'))).toEqual([]);
  });

  test.each([
    ['is not JSON', 'nonsense'],
    ['belongs to another deployment', { ...work, entity: 'others' }],
    ['is older than a day', { ...work, history: { id: 'aged', since: 1, attempts: 0, waits: 9 } }],
  ])('is recorded if it %s', async (_, body) => {
    const { count, name } = await openQueue();
    const before = (await poison()).length;
    await engineConsume.consumePoison(consumer, moved(name, body));
    expect(await poison()).toHaveLength(before + 1);
    expect(await count()).toBe(0);
  });
});

test('only an outage is ignored, because it leaves the message for later', async () => {
  const outage = baseValues.unavailable('Storage does not answer now.', undefined);
  expect(await unlessUnavailable(Promise.reject(outage))).toBeUndefined();
  const error = new Error('It fails.');
  await expect(unlessUnavailable(Promise.reject(error))).rejects.toBe(error);
  await expect(unlessUnavailable(Promise.reject(baseValues.busy('Later.')))).rejects.toMatchObject({ code: 'busy' });
});
