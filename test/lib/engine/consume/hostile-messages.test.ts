import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { employees } from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import {
  engineConsume,
  engineCore,
  engineReconcile,
  engineWrite,
  type Message,
  Transfer,
} from '../../../kit/engine.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { sampleRuns } from '../../../points.ts';
import { log } from '../../../silent-log.ts';
import { testStorage } from '../../../storage.ts';

const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }));
const consumer = { engine, entities: [employees], log };
const consumers = {
  [engineReconcile.INDEX_CHANGES_QUEUE]: engineConsume.consumeIntent,
  [engineReconcile.TRANSFERS_QUEUE]: engineConsume.consumeTransfer,
};

beforeAll(async () => {
  await storageTables.createTable(engine.storage, engineConsume.POISON_TABLE);
  for (const queue of Object.keys(consumers)) await engine.storage.queue(queue).createIfNotExists();
});
beforeEach(async () => {
  for (const { id } of await listed()) await engineConsume.dropPoison(engine, id);
});

const listed = async () => (await engineConsume.listPoison(engine, { limit: 1_000 })).items;

let sent = 0;
/** Delivers a message as the host does: at most five times, then from the poison queue under another id. */
async function deliver(queue: keyof typeof consumers, body: unknown, metadata: Record<string, unknown> = {}) {
  sent += 1;
  const given = { id: `message-${sent}`, insertionTime: new Date().toISOString(), ...metadata };
  for (let dequeueCount = 1; dequeueCount <= engineConsume.MAX_ATTEMPTS; dequeueCount += 1) {
    const message = engineConsume.toMessage(queue, body, { triggerMetadata: { dequeueCount, ...given } } as never);
    const isDone = await consumers[queue]?.(consumer, message).then(
      () => true,
      () => false,
    );
    if (isDone) return;
  }
  const moved: Message = { queue: `${queue}-poison`, id: `moved-${sent}`, attempts: 1, insertedAt: Date.now(), body };
  await engineConsume.consumePoison(consumer, moved);
}

const transfer = {
  version: 1,
  operation: 'archive',
  operationId: engineWrite.newOperationId(Date.now()),
  entity: 'employees',
  key: { department: 'Sales', employeeId: '000001' },
  incarnation: 'one',
};
const intent = { version: 1, intent: 'one', entity: 'employees', table: 'employees', items: [] };

test('a transfer without a recorded operation becomes one poison message, however often it is replayed', async () => {
  await deliver(engineReconcile.TRANSFERS_QUEUE, transfer);
  for (let round = 1; round <= 4; round += 1) {
    const all = await listed();
    expect(all.map(({ reason }) => reason)).toEqual([
      'Operation not found: the message does not match a recorded operation, or the operation ended too long ago.',
    ]);
    for (const { id } of all) await engineConsume.replayPoison(engine, id);
    const { receivedMessageItems } = await engine.storage
      .queue(engineReconcile.TRANSFERS_QUEUE)
      .receiveMessages({ numberOfMessages: 32 });
    expect(receivedMessageItems).toHaveLength(1);
    for (const { messageId, popReceipt, messageText } of receivedMessageItems) {
      await engine.storage.queue(engineReconcile.TRANSFERS_QUEUE).deleteMessage(messageId, popReceipt);
      await deliver(engineReconcile.TRANSFERS_QUEUE, JSON.parse(messageText));
    }
  }
  expect(await listed()).toHaveLength(1);
});

describe('a body with 20,000 levels of nesting', () => {
  const DEPTH = 20_000;
  const list: unknown = JSON.parse('['.repeat(DEPTH) + ']'.repeat(DEPTH));
  const object: unknown = JSON.parse(`${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`);

  test.each<[string, keyof typeof consumers, unknown]>([
    ['as a list', engineReconcile.INDEX_CHANGES_QUEUE, list],
    ['as an object', engineReconcile.TRANSFERS_QUEUE, object],
    ['in the items of an intent', engineReconcile.INDEX_CHANGES_QUEUE, { ...intent, items: list }],
    [
      'in an index entry of an intent',
      engineReconcile.INDEX_CHANGES_QUEUE,
      { ...intent, items: [{ partition: 'a', row: 'b', indexEntries: list }] },
    ],
    ['in a property of a later release', engineReconcile.INDEX_CHANGES_QUEUE, { ...intent, later: list }],
    ['in the trace of an intent', engineReconcile.INDEX_CHANGES_QUEUE, { ...intent, traceparent: object }],
    ['in the key of a transfer', engineReconcile.TRANSFERS_QUEUE, { ...transfer, key: { department: object } }],
    ['in the new values of a transfer', engineReconcile.TRANSFERS_QUEUE, { ...transfer, to: { department: list } }],
  ])('is recorded once and in full: %s', async (_, queue, body) => {
    await deliver(queue, body);
    const all = await listed();
    expect(all).toHaveLength(1);
    expect(all[0]?.queue).toBe(queue);
    expect(all[0]?.text === baseValues.jsonText(body)).toBe(true);
    await engineConsume.dropPoison(engine, all[0]?.id ?? '');
  });

  test('is serialized as JSON.stringify would do it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, name) => {
        let deep: unknown = value;
        for (let level = 0; level < DEPTH; level += 1) deep = { [name]: deep };
        const head = JSON.stringify({ [name]: 0 }).replace('0}', '');
        expect(baseValues.jsonText(deep) === head.repeat(DEPTH) + JSON.stringify(value) + '}'.repeat(DEPTH)).toBe(true);
      }),
      sampleRuns(20),
    );
  });
});

describe('a body that replaces trigger metadata', () => {
  test('is never a message of this app', () => {
    expect(engineConsume.listReplacedMetadata({ ...engineReconcile.Intent.shape, ...Transfer.shape })).toEqual([]);
  });

  test.each([
    ['id', { id: '../../x' }],
    ['dequeueCount', { DequeueCount: -1_000 }],
    ['insertionTime', { insertiontime: '+275760-09-13T00:00:00Z' }],
    ['popReceipt', { popReceipt: 'x' }],
  ])('becomes poison immediately under a generated id: %s', async (name, over) => {
    await deliver(engineReconcile.INDEX_CHANGES_QUEUE, { ...intent, ...over }, { [name]: Object.values(over)[0] });
    const all = await listed();
    expect(all.map(({ reason }) => reason)).toEqual([
      `The message cannot be read: it has the property ${name.toLowerCase()}, which the Functions host reserves.`,
    ]);
    expect(Math.abs(Date.parse(all[0]?.insertedAt ?? '') - Date.now())).toBeLessThan(60_000);
    await engineConsume.dropPoison(engine, all[0]?.id ?? '');
  });
});
