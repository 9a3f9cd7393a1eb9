import { beforeEach, describe, expect, test } from 'vitest';
import { costOf } from '../../../cost-of.ts';
import { engineCore, engineReconcile, type Message } from '../../../kit/engine.ts';
import { storageAccounts, storageQueues } from '../../../kit/storage.ts';
import { receiveMessage } from '../../../receive-message.ts';
import { testStorage } from '../../../storage.ts';
import { LONG_HOLDS } from '../../../world.ts';

/** What a hold sends and hides, one call after another. hold.test.ts has its life beside other consumers. */

const QUEUE = 'held-work';
const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
let ahead = 0;
const engine = engineCore.createEngine(storage, { timing: LONG_HOLDS, now: () => Date.now() + ahead });
const queue = storage.queue(QUEUE);

beforeEach(async () => {
  ahead = 0;
  await queue.createIfNotExists();
  await queue.clearMessages();
});

const count = async () => (await queue.getProperties()).approximateMessagesCount;
/** Receives a message, which is then no longer in the queue. */
const receive = async (): Promise<Message> => {
  if ((await queue.peekMessages()).peekedMessageItems.length === 0) throw new Error('No message is visible.');
  const { message, receipt } = await receiveMessage(storage, QUEUE);
  await queue.deleteMessage(message.id, receipt);
  return message;
};
const sent = async (work: object = { intent: 'one' }): Promise<Message> => {
  await engineReconcile.sendWork(engine, QUEUE, work);
  return receive();
};
const bodyOf = ({ body }: Message) => body as { reminder: object; history: object };

describe('the hold on a message', () => {
  test('costs nothing at its first delivery, and one call at a later one', async () => {
    const message = await sent();
    expect(await costOf(() => engineReconcile.holdWork(engine, message))).toBe(0);
    expect(await costOf(() => engineReconcile.holdWork(engine, { ...message, attempts: 2 }))).toBe(1);
  });

  test('of a message without a reminder hides a copy of the work', async () => {
    await storageQueues.sendMessage(storage, QUEUE, { intent: 'alone' });
    const held = await engineReconcile.holdWork(engine, await receive());
    expect(await count()).toBe(1);
    await held?.release();
    expect(await count()).toBe(0);
  });

  test('ends with the reminder', async () => {
    const held = await engineReconcile.holdWork(engine, await sent());
    expect(await count()).toBe(1);
    await held?.release();
    expect(await count()).toBe(0);
    await held?.release();
  });

  test('is renewed once by concurrent writes after two fifths of its time, and not before', async () => {
    const held = await engineReconcile.holdWork(engine, await sent());
    const keep = () => costOf(() => Promise.all([held?.keep(), held?.keep()]));
    ahead = LONG_HOLDS.settleWithinMs * 0.4 - 5_000;
    expect(await keep()).toBe(0);
    ahead += 6_000;
    expect([await keep(), await keep()]).toEqual([1, 0]);
    expect((await held?.keep())?.aborted).toBe(false);
  });

  test('cannot be renewed or postponed once another message has the work', async () => {
    const message = await sent();
    const held = await engineReconcile.holdWork(engine, message);
    expect(await engineReconcile.holdWork(engine, { ...message, attempts: 2 })).toBeDefined();
    const history = { id: 'one', since: 1, attempts: 1, waits: 0 };
    expect(await held?.putOff(history, 0)).toBe(false);
    ahead = LONG_HOLDS.settleWithinMs;
    await expect(held?.keep()).rejects.toMatchObject({ code: 'busy' });
    expect(await held?.putOff(history, 0)).toBe(false);
    expect(await count()).toBe(1);
  });

  test('that is postponed sends the work again, with its history and a reminder', async () => {
    const held = await engineReconcile.holdWork(engine, await sent());
    const history = { id: 'first', since: 1_000, attempts: 3, waits: 2 };
    expect(await held?.putOff(history, 0)).toBe(true);
    const again = await receive();
    expect(again.body).toMatchObject({ intent: 'one', history, reminder: { id: expect.any(String) } });
    expect(await engineReconcile.holdWork(engine, again)).toBeDefined();
    expect(await held?.putOff(history, 600)).toBe(false);
    expect(await count()).toBe(1);
  });

  test('that is not of a message ends after its time', async () => {
    let now = 1_000;
    const hold = engineReconcile.holdFor({ now: () => now }, 500);
    now += 499;
    expect((await hold.keep()).aborted).toBe(false);
    now += 1;
    await expect(hold.keep()).rejects.toMatchObject({ code: 'busy' });
  });
});

test('a message names the first one of its work, and how old that is', async () => {
  const { history, reminder } = bodyOf(await sent());
  expect(history).toMatchObject({ attempts: 0, waits: 0, since: expect.any(Number) });
  expect((history as { id: string }).id).toBe((reminder as { id: string }).id);
});
