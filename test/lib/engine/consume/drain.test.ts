import type { QueueClient } from '@azure/storage-queue';
import fc from 'fast-check';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { drainQueues } from '../../../../lib/engine/consume/drain.ts';
import { httpClient, showMessages } from '../../../../local/walk/known-messages.ts';
import { anyText } from '../../../any-text.ts';
import { employees } from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineConsume, engineCore, engineReconcile } from '../../../kit/engine.ts';
import { type Storage, storageAccounts, storageQueues, storageSlots, storageTables } from '../../../kit/storage.ts';
import { sampleRuns } from '../../../points.ts';
import { log } from '../../../silent-log.ts';
import { testStorage } from '../../../storage.ts';
import { createAccounts } from '../../storage/several-accounts.ts';

const QUEUE = `${engineReconcile.INDEX_CHANGES_QUEUE}-poison`;
const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient });
const queues = [engineReconcile.INDEX_CHANGES_QUEUE, engineReconcile.TRANSFERS_QUEUE].flatMap((name) => [
  name,
  `${name}-poison`,
]);
const warned: string[] = [];

beforeAll(async () => {
  await storageTables.createTable(storage, engineConsume.POISON_TABLE);
  for (const name of queues) await storage.queue(name).createIfNotExists();
});
beforeEach(() => {
  warned.length = 0;
});
afterEach(async () => {
  for (const name of queues) await storage.queue(name).clearMessages();
  for (const { id } of await listed()) await engineConsume.dropPoison(engineCore.createEngine(storage), id);
});

const listed = async () => (await engineConsume.listPoison(engineCore.createEngine(storage), { limit: 1_000 })).items;
const send = (text: string) => storage.queue(QUEUE).sendMessage(text);
const left = async () => (await storage.queue(QUEUE).getProperties()).approximateMessagesCount;

/** Runs the timer on this storage. */
function run(
  over: Partial<Storage> = {},
  client: Partial<QueueClient> = {},
  until = Date.now() + baseValues.DAY_MS,
  formerParts: readonly string[] = [],
) {
  const queue = (name: string): QueueClient => Object.assign(Object.create(storage.queue(name)), client);
  const engine = engineCore.createEngine({ ...storage, queue, ...over });
  const log = { warn: (line: string) => void warned.push(line), error: () => undefined };
  return drainQueues({ engine, entities: [employees], log }, { until, formerParts });
}

const away = () => {
  throw new Error('AccountKey=s3cret');
};

test('an idle run costs one transaction per queue', async () => {
  const { transactions } = await storageAccounts.measureCost(async (cost) => {
    await run();
    return { ...cost };
  });
  expect(transactions).toBe(2);
});

test('records a message with its text and deletes it', async () => {
  await send('nonsense');
  await run();
  expect(await listed()).toMatchObject([
    { queue: engineReconcile.INDEX_CHANGES_QUEUE, text: 'nonsense', attempts: engineConsume.MAX_ATTEMPTS },
  ]);
  expect(await left()).toBe(0);
});

test('returns a message that may succeed to its queue', async () => {
  await send(JSON.stringify({ version: 1, intent: 'back', entity: 'employees', table: 'employees', items: [] }));
  await run();
  expect(await listed()).toEqual([]);
  expect(await left()).toBe(0);
  const { receivedMessageItems } = await storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).receiveMessages();
  expect(receivedMessageItems.map(({ messageText }) => JSON.parse(messageText))).toMatchObject([
    { intent: 'back', history: { attempts: 0, waits: 1 } },
  ]);
});

test('records a message with too many levels of nesting to be sent again, even if the rest of it is readable', async () => {
  const intent = { version: 1, intent: 'deep', entity: 'employees', table: 'employees', items: [], later: 0 };
  const text = JSON.stringify(intent).replace('0}', `${'['.repeat(20_000)}${']'.repeat(20_000)}}`);
  await send(text);
  await run();
  const [poison] = await listed();
  expect(poison?.reason).toBe('The message cannot be read: it is nested more than 1000 deep.');
  expect(poison?.text === text).toBe(true);
});

test('records the exact text of any message', async () => {
  const unit = fc.oneof(anyText(), fc.json(), fc.base64String(), fc.constantFrom('"\\ud800"', ' '));
  // The queue service uses XML, which has no other characters, and its parser trims:
  // https://www.w3.org/TR/xml/#charsets
  const texts = unit
    .map((text) => text.replaceAll(/[^\t\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '').trim())
    .filter((text) => text !== '');
  await fc.assert(
    fc.asyncProperty(fc.array(texts, { maxLength: 40 }), async (sent) => {
      for (const text of sent) await send(text);
      await run();
      const items = await listed();
      const jsonOf = (text: string) => {
        try {
          const body: unknown = JSON.parse(text);
          return typeof body === 'string' ? text : JSON.stringify(body);
        } catch {
          return text;
        }
      };
      expect(items.map(({ text }) => text).sort()).toEqual(sent.map(jsonOf).sort());
      expect(await left()).toBe(0);
      for (const { id } of items) await engineConsume.dropPoison(engineCore.createEngine(storage), id);
    }),
    sampleRuns(10),
  );
});

test('leaves a message that cannot be recorded, fails without printing a secret, and records it in the next run', async () => {
  await send('nonsense');
  await expect(run({ table: away })).rejects.toThrow('1 messages of index-changes-poison could not be handled');
  expect(warned).toEqual([expect.stringMatching(/stays for the next run: an unexpected Error$/)]);
  expect(await left()).toBe(1);
  await showMessages(storage.queue(QUEUE));
  await run();
  expect(await listed()).toHaveLength(1);
  expect(await left()).toBe(0);
});

test('drains the other queue if one cannot be read', async () => {
  await storage.queue(`${engineReconcile.TRANSFERS_QUEUE}-poison`).sendMessage('nonsense');
  const queue = (name: string) => (name === QUEUE ? away() : storage.queue(name));
  await expect(run({ queue })).rejects.toThrow();
  expect(await listed()).toMatchObject([{ queue: engineReconcile.TRANSFERS_QUEUE }]);
});

test('leaves one record after a crash between the record and the deletion', async () => {
  await send('nonsense');
  await expect(run({}, { deleteMessage: away })).rejects.toThrow();
  const [first] = await listed();
  expect(await left()).toBe(1);
  await showMessages(storage.queue(QUEUE));
  await run();
  expect(await listed()).toEqual([{ ...first, recordedAt: expect.any(String) }]);
  expect(await left()).toBe(0);
});

test('two concurrent runs record each message once', async () => {
  for (let count = 0; count < 20; count += 1) await send(`nonsense ${count}`);
  await Promise.all([run(), run()]);
  expect(await listed()).toHaveLength(20);
  expect(await left()).toBe(0);
});

test('starts no batch after its time limit', async () => {
  await Promise.all(Array.from({ length: 40 }, (_, count) => send(`nonsense ${count}`)));
  await run({}, {}, Date.now() - 1);
  expect(await left()).toBe(8);
  await run();
  expect(await left()).toBe(0);
  expect(await listed()).toHaveLength(40);
});

describe('a part that the model no longer has', () => {
  const PART = 'index-changes-2';
  const engine = engineCore.createEngine(storage);
  const part = storage.queue(PART);
  const items = [{ partition: 'Sales', row: 'no employee', indexEntries: [] }];
  const intent = { version: 1, intent: 'former', entity: 'employees', table: 'employees', items };
  const remaining = async () => (await part.getProperties()).approximateMessagesCount;
  const drain = () => run({}, {}, undefined, [PART]);

  beforeAll(() => part.createIfNotExists());

  test('is emptied, and its poison is sent again to a part that exists', async () => {
    await engineReconcile.sendWork(engine, PART, intent);
    await drain();
    expect(await remaining()).toBe(0);
    const [poison] = await listed();
    expect(poison).toMatchObject({ queue: PART, reason: expect.stringContaining('a key that no entity') });
    await engineConsume.replayPoison(engine, poison?.id ?? '');
    expect(await remaining()).toBe(0);
    expect(
      await storageQueues.receiveMessages(storage, engineReconcile.INDEX_CHANGES_QUEUE, { limit: 9, hiddenFor: 1 }),
    ).toHaveLength(1);
  });

  test('leaves work to the process that has it', async () => {
    await engineReconcile.sendWork(engine, PART, intent);
    const [work] = await storageQueues.receiveMessages(storage, PART, { limit: 1, hiddenFor: 60 });
    const { id = '', popReceipt = '', text = '' } = work ?? {};
    const { reminder } = JSON.parse(text);
    await part.updateMessage(id, popReceipt, text, 0);
    const hidden = await storageQueues.hideMessage(storage, { queue: PART, ...reminder, text }, 60);
    await drain();
    expect([await remaining(), await listed()]).toEqual([1, []]);
    if (hidden) await storageQueues.deleteMessage(storage, hidden);
  });
});

test('empties the poison queues of the other accounts while one is away', { tags: ['slow'] }, async () => {
  const { open, stopped } = createAccounts();
  const several = open();
  await storageTables.provision(several, { tables: [storageSlots.SYSTEM_TABLE], queues, containers: [] });
  const names = ['', 'second/', 'third/'].map((account) => `${account}${QUEUE}`);
  const intent = { version: 1, intent: 'back', entity: 'employees', table: 'employees', items: [] };
  for (const name of names) await several.queue(name).sendMessage(JSON.stringify(intent));
  stopped.add('second');
  const consumer = { engine: engineCore.createEngine(several), entities: [employees], log };
  const draining = drainQueues(consumer, { until: Date.now() + baseValues.DAY_MS });
  await expect(draining).rejects.toThrow('the account second does not respond');
  stopped.clear();
  const lengths = names.map(async (name) => (await several.queue(name).getProperties()).approximateMessagesCount);
  expect(await Promise.all(lengths)).toEqual([0, 1, 0]);
});

test('says which code of storage a message failed with, and no more of the error', async () => {
  const call = storage.table(engineConsume.POISON_TABLE).createEntity({ partitionKey: 'a', rowKey: 'b'.repeat(2_000) });
  const error = await call.catch((thrown: unknown) => thrown);
  expect(engineConsume.reasonOf(error)).toMatch(/^an unexpected RestError \(400 \w+\)$/);
});
