import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { consumeIntent } from '../../../../lib/engine/consume/consume.ts';
import type { Message } from '../../../../lib/engine/consume/poison.ts';
import { holdWork, sendWork } from '../../../../lib/engine/reconcile/hold.ts';
import { INDEX_CHANGES_QUEUE as QUEUE } from '../../../../lib/engine/reconcile/intent.ts';
import { createEntity, patchEntity } from '../../../../lib/engine/write/entity-store.ts';
import { measureCost } from '../../../../lib/storage/cost.ts';
import { type Fault, faultyHttpClient } from '../../../faulty-http-client.ts';
import { customers, orders } from '../../../fixtures/model.ts';
import { samplePoints } from '../../../points.ts';
import { receiveMessage } from '../../../receive-message.ts';
import { countTried } from '../../../tried-faults.ts';
import { expectIndexesToAgree, openWorld, type World } from '../../../world.ts';

/** Work that a function receives within seconds, for the first time. */

const work = { version: 1, intent: 'one', entity: 'customers', table: 'customers', items: [] };

let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url);
});
beforeEach(async () => {
  await world.storage.queue(QUEUE).clearMessages();
});

const receiveWithReceipt = () => receiveMessage(world.storage, QUEUE);
const receive = async () => (await receiveWithReceipt()).message;

const countMessages = async () => (await world.storage.queue(QUEUE).getProperties()).approximateMessagesCount;
const costOf = (call: () => Promise<unknown>) =>
  measureCost(async (cost) => {
    await call();
    return cost.transactions;
  });
const laterBy = (milliseconds: number) => ({ ...world.engine, now: () => Date.now() + milliseconds });

test('needs no call for its hold', async () => {
  await sendWork(world.engine, QUEUE, work);
  const message = await receive();
  expect(await costOf(() => holdWork(world.engine, message))).toBe(0);
});

describe('asks storage for the hold', () => {
  const withoutTime = ({ body, ...message }: Message): Message => {
    const { reminder, ...rest } = body as { reminder: { id: string; popReceipt: string } };
    return { ...message, body: { ...rest, reminder: { id: reminder.id, popReceipt: reminder.popReceipt } } };
  };
  test.each<[string, number, (message: Message) => Message]>([
    ['that is delivered again', 0, (message) => ({ ...message, attempts: 2 })],
    ['that waited for most of a minute', 50_000, (message) => message],
    ['by a clock that is behind', -50_000, (message) => message],
    ['of an earlier release', 0, withoutTime],
  ])('for work %s', async (_, milliseconds, change) => {
    await sendWork(world.engine, QUEUE, work);
    const message = change(await receive());
    const engine = laterBy(milliseconds);
    const cost = costOf(async () => expect(await holdWork(engine, message)).toBeDefined());
    expect(await cost).toBe(1);
    expect(await holdWork(engine, message)).toBeUndefined();
  });
});

test('stops before its next write when another message has taken over', async () => {
  await sendWork(world.engine, QUEUE, work);
  const message = await receive();
  let ahead = 0;
  const stalled = await holdWork({ ...world.engine, now: () => Date.now() + ahead }, message);
  expect((await stalled?.keep())?.aborted).toBe(false);
  expect(await holdWork(world.engine, { ...message, attempts: 2 })).toBeDefined();
  ahead = 20_000;
  await expect(stalled?.keep()).rejects.toMatchObject({ code: 'busy' });
});

test.each(['refused', 'throttled'] as const)(
  'is sent again if storage was busy, which has executed nothing: %s',
  async (fault) => {
    await sendWork(world.engineThrough(faultyHttpClient(fault, 2)), QUEUE, work);
    // The work and its reminder.
    expect(await countMessages()).toBe(2);
  },
);

test('exists once if the reply to its message is lost', async () => {
  const client = faultyHttpClient('reply lost', 2);
  await sendWork(world.engineThrough(client), QUEUE, work);
  expect(client.calls).toBe(2);
  // The work and its reminder.
  expect(await countMessages()).toBe(2);
});

test('has the poison record of its reminder', async () => {
  await sendWork(world.engine, QUEUE, work);
  const { body } = await receive();
  const { reminder, history } = body as { reminder: { id: string }; history: { id: string; since: number } };
  expect(history.id).toBe(reminder.id);
  expect(history.since).toBeLessThanOrEqual(Date.now());
});

test('settles the index entry of a new entity in four calls, and of a changed one in five', async () => {
  const engine = { ...world.engine, settleInline: 0 };
  const consumer = { engine, entities: [orders], log: { warn: () => undefined, error: () => undefined } };
  const settle = async () => {
    const message = await receive();
    return costOf(() => consumeIntent(consumer, message));
  };
  await createEntity(world.engine, customers, { city: 'Bern', customerId: 'N1', companyName: 'A' });
  const key = { customerId: 'N1', orderId: 1 };
  await createEntity(engine, orders, { ...key, orderDate: '2026-11-20' });
  const created = await settle();
  await patchEntity(engine, orders, key, { freight: 2 });
  const changed = await settle();
  // The entity before and after, the entry, the reminder; for a changed one, the entry before.
  expect({ created, changed }).toEqual({ created: 4, changed: 5 });
  await expectIndexesToAgree(world.storage, orders);
});

test('leaves no difference if its function fails or dies at any call', async () => {
  await createEntity(world.engine, customers, { city: 'Bern', customerId: 'F1', companyName: 'A' });
  const queued = { ...world.engine, settleInline: 0 };
  let orderId = 0;
  const run = async (fault?: Fault, at?: number) => {
    orderId += 1;
    await createEntity(queued, orders, { customerId: 'F1', orderId, orderDate: '2026-11-20' });
    const { receipt, message } = await receiveWithReceipt();
    const client = faultyHttpClient(fault, at);
    // The moment of the sending, on a machine of any speed.
    const { hiddenUntil } = (message.body as { reminder: { hiddenUntil: number } }).reminder;
    const sentAt = hiddenUntil - world.engine.timing.hideIntentForSeconds * 1_000;
    const engine = { ...world.engineThrough(client), now: () => sentAt + 1_000 };
    const log = { warn: () => undefined, error: () => undefined };
    const isDone = await consumeIntent({ engine, entities: [orders], log }, message).then(
      () => true,
      () => false,
    );
    // The host of a dead process shows its message after ten minutes: the reminder alone has to continue the work.
    if (isDone || fault?.startsWith('crash')) await world.storage.queue(QUEUE).deleteMessage(message.id, receipt);
    return client.calls;
  };
  const calls = await run();
  expect(calls).toBe(4);
  for (const fault of ['crash before', 'crash after', 'reply lost', 'server error'] as const)
    for (const at of samplePoints(calls)) {
      await countTried({ what: `First delivery, each storage call: ${fault}` }, () => run(fault, at));
    }
  await world.settle();
  await countTried({ what: 'First delivery: indexes agree afterwards' }, () =>
    expectIndexesToAgree(world.storage, orders),
  );
});
