import { beforeEach, describe, expect, test } from 'vitest';
import { showMessages } from '../../../../local/walk/known-messages.ts';
import { costOf } from '../../../cost-of.ts';
import { CONSUMER_FAULTS, type FaultTrial, tryFaults } from '../../../fault-driver.ts';
import { faultyHttpClient } from '../../../faulty-http-client.ts';
import { customers, orders } from '../../../fixtures/model.ts';
import { type Engine, engineConsume, engineReconcile, engineWrite, type Message } from '../../../kit/engine.ts';
import { receiveMessage } from '../../../receive-message.ts';
import { log } from '../../../silent-log.ts';
import { countTried } from '../../../tried-faults.ts';
import { expectIndexesToAgree, LONG_HOLDS, openWorld, QUICK, withClock } from '../../../world.ts';

/** Work that a function receives within seconds, for the first time. */

const work = { version: 1, intent: 'one', entity: 'customers', table: 'customers', items: [] };

const world = await openWorld(import.meta.url);
const engine = { ...world.engine, timing: LONG_HOLDS };
beforeEach(async () => {
  await world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).clearMessages();
});

const receiveWithReceipt = () => receiveMessage(world.storage, engineReconcile.INDEX_CHANGES_QUEUE);
const receive = async () => (await receiveWithReceipt()).message;

/** The engine of a process that has had no response of Queue storage. */
const whenUnknown = () => withClock(engine, () => undefined);

const countMessages = async () =>
  (await world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).getProperties()).approximateMessagesCount;

test('needs no call for its hold, whatever the clock of its function shows', async () => {
  for (const wrongBy of [0, -7_200_000, 7_200_000]) {
    await engineReconcile.sendWork(engine, engineReconcile.INDEX_CHANGES_QUEUE, work);
    const message = await receive();
    const wrong = { ...engine, now: () => Date.now() + wrongBy };
    expect(await costOf(() => engineReconcile.holdWork(wrong, message))).toBe(0);
  }
});

describe('asks storage for the hold', () => {
  const ofReminder = (change: (until: number) => number | undefined) => (message: Message) => {
    const { reminder, ...body } = message.body as { reminder: { hiddenUntil: number } };
    return { ...message, body: { ...body, reminder: { ...reminder, hiddenUntil: change(reminder.hiddenUntil) } } };
  };
  const same = (message: Message) => message;
  test.each<[string, (message: Message) => Message, () => Engine]>([
    ['that is delivered again', (message) => ({ ...message, attempts: 2 }), () => engine],
    ['that waited for most of the time', ofReminder((until) => until - 500_000), () => engine],
    ['whose sender hides reminders for longer', ofReminder((until) => until + 500_000), () => engine],
    ['of an earlier release', ofReminder(() => undefined), () => engine],
    ['if the clock of storage is unknown', same, whenUnknown],
  ])('for work %s', async (_, change, open) => {
    await engineReconcile.sendWork(engine, engineReconcile.INDEX_CHANGES_QUEUE, work);
    const message = change(await receive());
    const cost = costOf(async () => expect(await engineReconcile.holdWork(open(), message)).toBeDefined());
    expect(await cost).toBe(1);
    expect(await engineReconcile.holdWork(open(), message)).toBeUndefined();
  });

  test('in a function whose clock is as far behind as the work has waited', { tags: ['slow'] }, async () => {
    const quick = { ...world.engine, timing: QUICK };
    await engineReconcile.sendWork(quick, engineReconcile.INDEX_CHANGES_QUEUE, work);
    const sentAt = Date.now();
    // The message, and the reminder, which another function then holds.
    const received = [await receive(), await receive()];
    const message = received.find(({ body }) => 'reminder' in Object(body));
    if (!message) throw new Error('The message was not received.');
    expect(await engineReconcile.holdWork({ ...quick, now: () => sentAt }, message)).toBeUndefined();
  });
});

test('stops before its next write when another message has taken over', async () => {
  await engineReconcile.sendWork(engine, engineReconcile.INDEX_CHANGES_QUEUE, work);
  const message = await receive();
  let ahead = 0;
  const stalled = await engineReconcile.holdWork({ ...engine, now: () => Date.now() + ahead }, message);
  expect((await stalled?.keep())?.aborted).toBe(false);
  expect(await engineReconcile.holdWork(engine, { ...message, attempts: 2 })).toBeDefined();
  ahead = 250_000;
  await expect(stalled?.keep()).rejects.toMatchObject({ code: 'busy' });
});

test.each(['refused', 'throttled'] as const)(
  'is sent again if storage was busy, which has executed nothing: %s',
  async (fault) => {
    await engineReconcile.sendWork(
      world.engineThrough(faultyHttpClient(fault, 2)),
      engineReconcile.INDEX_CHANGES_QUEUE,
      work,
    );
    // The work and its reminder.
    expect(await countMessages()).toBe(2);
  },
);

test('exists once if the reply to its message is lost', async () => {
  const client = faultyHttpClient('reply lost', 2);
  await engineReconcile.sendWork(world.engineThrough(client), engineReconcile.INDEX_CHANGES_QUEUE, work);
  expect(client.calls).toBe(2);
  // The work and its reminder.
  expect(await countMessages()).toBe(2);
});

test('has the poison record of its reminder', async () => {
  await engineReconcile.sendWork(world.engine, engineReconcile.INDEX_CHANGES_QUEUE, work);
  const { body } = await receive();
  const { reminder, history } = body as { reminder: { id: string }; history: { id: string; since: number } };
  expect(history.id).toBe(reminder.id);
  expect(history.since).toBeLessThanOrEqual(Date.now());
});

describe('work that kills its process at every attempt', () => {
  test.each<[string, number, () => Engine]>([
    ['sixth', 6, whenUnknown],
    ['seventh, because the first attempt made no call for its hold', 7, () => engine],
  ])('is recorded without a further attempt at the delivery that is the %s', async (_, last, open) => {
    const deadly = { ...work, intent: `deadly ${last}` };
    await engineReconcile.sendWork(engine, engineReconcile.INDEX_CHANGES_QUEUE, deadly);
    let started = 0;
    for (let delivery = 1; delivery <= last; delivery += 1) {
      // The host of a dead process shows its message after ten minutes: only the reminder continues the work.
      if (delivery > 1) await showMessages(world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE));
      const { receipt, message } = await receiveWithReceipt();
      await world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).deleteMessage(message.id, receipt);
      const recorded = await new Promise<boolean>((resolve, reject) => {
        const work = async (take: () => Promise<unknown>) => {
          expect(await take()).toBeDefined();
          started += 1;
          resolve(false);
          await new Promise(() => undefined);
        };
        engineConsume.handleMessage(open(), message, log, work).then(() => resolve(true), reject);
      });
      expect({ delivery, recorded }).toEqual({ delivery, recorded: delivery === last });
    }
    expect(started).toBe(last - 1);
    const { items } = await engineConsume.listPoison(world.engine, { limit: 100 });
    const [record, ...others] = items.filter(({ text }) => text === JSON.stringify(deadly));
    expect(record).toMatchObject({ reason: 'The process stopped at every attempt to handle the message.' });
    expect(others).toEqual([]);
    await engineConsume.dropPoison(world.engine, record?.id ?? '');
  });
});

test('settles the index entry of a new entity in four calls, and of a changed one in five', async () => {
  const queued = { ...engine, settleInline: 0 };
  const consumer = { engine: queued, entities: [orders], log };
  const settle = async () => {
    const message = await receive();
    return costOf(() => engineConsume.consumeIntent(consumer, message));
  };
  await engineWrite.createEntity(world.engine, customers, { city: 'Bern', customerId: 'N1', companyName: 'A' });
  const key = { customerId: 'N1', orderId: 1 };
  await engineWrite.createEntity(queued, orders, { ...key, orderDate: '2026-11-20' });
  const created = await settle();
  await engineWrite.patchEntity(queued, orders, key, { freight: 2 });
  const changed = await settle();
  // The entity before and after, the entry, the reminder; for a changed one, the entry before.
  expect({ created, changed }).toEqual({ created: 4, changed: 5 });
  await expectIndexesToAgree(world.storage, orders);
});

test('leaves no difference if its function fails or dies at any call', { tags: ['slow'] }, async () => {
  await engineWrite.createEntity(world.engine, customers, { city: 'Bern', customerId: 'F1', companyName: 'A' });
  const queued = { ...engine, settleInline: 0 };
  let orderId = 0;
  const run = async ({ fault, client }: FaultTrial) => {
    orderId += 1;
    await engineWrite.createEntity(queued, orders, { customerId: 'F1', orderId, orderDate: '2026-11-20' });
    const { receipt, message } = await receiveWithReceipt();
    const isDone = await engineConsume
      .consumeIntent({ engine: world.engineThrough(client, LONG_HOLDS), entities: [orders], log }, message)
      .then(
        () => true,
        () => false,
      );
    // The host of a dead process shows its message after ten minutes: the reminder alone has to continue the work.
    if (isDone || fault?.startsWith('crash'))
      await world.storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).deleteMessage(message.id, receipt);
    if (!fault) expect(client.calls).toBe(4);
  };
  await tryFaults(run, {
    what: ({ fault }) => `First delivery, each storage call: ${fault}`,
    faults: [...CONSUMER_FAULTS, 'server error'],
  });
  await world.settle();
  await countTried({ what: 'First delivery: indexes agree afterwards' }, () =>
    expectIndexesToAgree(world.storage, orders),
  );
});
