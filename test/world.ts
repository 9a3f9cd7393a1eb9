import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpClient } from '@azure/core-rest-pipeline';
import { expect, inject } from 'vitest';
import type { Values } from '../lib/index.ts';
import { compareStored } from '../local/walk/compare-stored.ts';
import { isQueued, httpClient as knowingClient } from '../local/walk/known-messages.ts';
import { createQueueWorker, parsed } from '../local/walk/queue-worker.ts';
import { model } from './fixtures/model.ts';
import type { Entity } from './kit/define.ts';
import { type Engine, engineCore, type Message, type Timing } from './kit/engine.ts';
import { operationsModel } from './kit/operations.ts';
import { type Storage, storageAccounts, storageKeys, storageTables } from './kit/storage.ts';
import { testStorage } from './storage.ts';

export { rowsOf } from '../local/walk/compare-stored.ts';

/** The proportions of production, with enough time for a writer on a busy machine to succeed. */
const PATIENT: Timing = {
  commitWithinMs: 30_000,
  claimForMs: 40_000,
  hideIntentForSeconds: 45,
  settleWithinMs: 36_000,
};
/**
 * Short limits, for a process that dies or whose outcome does not matter. Its intent becomes visible after five
 * seconds.
 */
export const QUICK: Timing = {
  commitWithinMs: 2_500,
  claimForMs: 3_500,
  hideIntentForSeconds: 5,
  settleWithinMs: 4_000,
};
/** As `PATIENT`, but the holds of queue functions need no renewal on a machine of any speed. */
export const LONG_HOLDS: Timing = { ...PATIENT, hideIntentForSeconds: 600, settleWithinMs: 500_000 };
const POLL_MS = 20;

export interface World {
  readonly storage: Storage;
  readonly engine: Engine;
  /** An engine that leaves every intent to the queue. */
  readonly queued: Engine;
  /** The file of the key-encryption keys. */
  readonly keyFile: string;
  /** Creates an engine for another process on the same storage, whose calls go through `httpClient`. */
  engineThrough(httpClient: HttpClient, timing?: Timing): Engine;
  /** The log of the queue functions. */
  readonly logged: string[];
  /** Handles a batch of visible messages of each queue, and returns their number. */
  handleVisible(): Promise<number>;
  /**
   * Handles messages until the queues are empty, hidden ones immediately, as if their time had passed. Call this when no
   * writer or consumer of the test is running.
   */
  settle(): Promise<void>;
  /** As `settle`, but waits until hidden messages become visible by themselves. */
  settleInTime(): Promise<void>;
  /**
   * Removes the message that contains `text` from a queue, so that the test can consume it. Throws if no writer of the
   * test has sent such a message.
   */
  take(queue: string, text: string): Promise<Message>;
}

interface WorldOptions {
  readonly prefix?: string;
  readonly queueParts?: number;
  /** The URLs of further storage accounts, as of test files. */
  readonly further?: readonly string[];
  /** An entity of the model whose key changes, as the queue functions declare it when they handle a message. */
  readonly rekeyed?: () => Entity;
}

/** Opens the model of the fixtures, with additional entities, on the storage account of the test file. */
export async function openWorld(
  url: string,
  more: readonly Entity[] = [],
  { prefix = '', queueParts = 1, further = [], rekeyed }: WorldOptions = {},
): Promise<World> {
  const entities = [...model.list, ...more];
  const connections = [url, ...further].map(testStorage);
  const open = (httpClient: HttpClient) => {
    const accounts = connections.map((connectionString, index) => ({
      name: ['first', 'second', 'third'][index] ?? '',
      connectionString,
      httpClient,
    }));
    const [only] = accounts;
    const opened = storageAccounts.openStorage(accounts.length === 1 && only ? only : { accounts }, prefix);
    return storageAccounts.withShapes(opened, entities);
  };
  const storage = open(knowingClient);
  const keyFile = join(inject('folder'), `${randomUUID()}.json`);
  await storageKeys.rotateLocalKey(keyFile);
  const keys = storageKeys.createLocalKeyRing(keyFile);
  await storageTables.provision(storage, operationsModel.resourcesOf(entities, Date.now(), { queueParts }));
  const logged: string[] = [];
  const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };
  const engine = engineCore.createEngine(storage, { timing: PATIENT, keys, queueParts });
  const consumer = {
    get engine() {
      return rekeyed ? { ...engine, rekey: operationsModel.createRekey([rekeyed()]) } : engine;
    },
    get entities() {
      return rekeyed ? [...entities.filter(({ name }) => name !== rekeyed().name), rekeyed()] : entities;
    },
    log,
  };

  // Messages that `take` received while it searched for another one.
  let held: (Message & { text: string })[] = [];
  // Calls of `take` that are between the two.
  let receiving = 0;

  async function putBack() {
    const all = held;
    held = [];
    await Promise.all(all.map(({ queue, text }) => storage.queue(queue).sendMessage(text)));
  }

  const worker = createQueueWorker(consumer, { lastLogged: () => logged.slice(-3).join(' | ') });
  const afterPutBack = (work: () => Promise<void>) => async () => {
    await putBack();
    await work();
  };

  async function take(queue: string, text: string): Promise<Message> {
    const client = storage.queue(queue);
    for (;;) {
      const isWanted = (message: { queue: string; text: string }) =>
        message.queue === queue && message.text.includes(text);
      const found = held.find(isWanted);
      if (found) {
        held.splice(held.indexOf(found), 1);
        return found;
      }
      const { receivedMessageItems } = await client.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 30 });
      if (receivedMessageItems.length === 0) {
        if (receiving === 0 && !held.some(isWanted) && !isQueued(client, text))
          throw new Error(`No message of ${queue} has ${text} in it.`);
        await sleep(POLL_MS);
      }
      receiving += 1;
      await Promise.all(
        receivedMessageItems.map(async ({ messageId: id, popReceipt, messageText, dequeueCount, insertedOn }) => {
          await client.deleteMessage(id, popReceipt);
          const insertedAt = insertedOn.getTime();
          const { reminder, ...body } = Object(parsed(messageText));
          // The test takes over the hold, so the reminder is deleted.
          if (reminder) await client.deleteMessage(reminder.id, reminder.popReceipt).catch(() => undefined);
          held.push({ queue, id, attempts: dequeueCount, insertedAt, body, text: JSON.stringify(body) });
        }),
      ).finally(() => {
        receiving -= 1;
      });
    }
  }
  const engineThrough = (httpClient: HttpClient, timing = PATIENT) => {
    // A process that has had a response of storage before.
    const { clock } = storage;
    return engineCore.createEngine({ ...open(httpClient), clock }, { timing, keys, queueParts });
  };
  return {
    storage,
    engine,
    queued: engineCore.createEngine(storage, { timing: PATIENT, keys, queueParts, settleInline: 0 }),
    keyFile,
    engineThrough,
    logged,
    handleVisible: async () => {
      await putBack();
      return worker.handleVisible();
    },
    settle: afterPutBack(worker.settle),
    settleInTime: afterPutBack(worker.settleInTime),
    take,
  };
}

/** The engine of a process for which the clock of storage shows this time. */
export function withClock(engine: Engine, time: () => number | undefined): Engine {
  return { ...engine, storage: { ...engine.storage, clock: { earliestTime: time, latestTime: time } } };
}

/** The engine of a process this much later, by its own clock and by that of storage. */
export function laterBy(engine: Engine, milliseconds: () => number): Engine {
  const time = () => Date.now() + milliseconds();
  return { ...withClock(engine, time), now: time };
}

/**
 * Compares every index of an entity with its entities: no entry is missing, different or left over, and no claim,
 * tombstone or poison message exists. The expectation is computed from the declaration alone. Returns the entities.
 * Fails with the differences, without those that an earlier test of the file reported.
 */
export async function expectIndexesToAgree(storage: Storage, entity: Entity): Promise<readonly Values[]> {
  const { values, differences } = await compareStored(storage, entity);
  reportDifferences(differences);
  return values;
}

const reportedBy = new Map<string, string | undefined>();
const MAX_DIFFERENCE_LENGTH = 1_000;

/** Fails with the differences that no earlier test of the file reported. */
function reportDifferences(differences: readonly string[]): void {
  const test = expect.getState().currentTestName;
  const unreported = differences.filter((difference) => {
    if (!reportedBy.has(difference)) reportedBy.set(difference, test);
    return reportedBy.get(difference) === test;
  });
  expect(unreported.map((difference) => difference.slice(0, MAX_DIFFERENCE_LENGTH))).toEqual([]);
}

/** Above the numbers that tests spell: files of one process share it, and some of them share an app. */
let counter = 800_000;

/** Returns an employee that no other test uses. */
export function somebody(
  over: Values = {},
): Values & { department: string; employeeId: string; email: string; lastName: string } {
  counter += 1;
  const employeeId = String(counter);
  return {
    department: 'Sales',
    employeeId,
    email: `${randomUUID()}@contoso.com`,
    firstName: 'Ann',
    lastName: `Last${counter}`,
    ...over,
  };
}
