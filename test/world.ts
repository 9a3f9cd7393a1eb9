import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { HttpClient } from '@azure/core-rest-pipeline';
import { expect, inject } from 'vitest';
import { toSnapshot, toValues } from '../lib/define/codec/entity-codec.ts';
import { groupsToRead, joinRows, withoutApart } from '../lib/define/codec/further-rows.ts';
import type { Entity } from '../lib/define/entity.ts';
import type { Index } from '../lib/define/indexes.ts';
import { parseFurtherRowKey } from '../lib/define/keys/further-rows.ts';
import { indexEntriesOf, isIndexed, remoteIndexesOf } from '../lib/define/keys/index-entries.ts';
import { buildKey } from '../lib/define/keys/key-template.ts';
import type { Total } from '../lib/define/totals.ts';
import { pick, type Values } from '../lib/define/values.ts';
import { consumeIntent, consumeTransfer } from '../lib/engine/consume/consume.ts';
import { type Message, POISON_TABLE } from '../lib/engine/consume/poison.ts';
import { createEngine, type Engine, type Timing } from '../lib/engine/engine.ts';
import { resourcesOf } from '../lib/operations/resources.ts';
import { membersOf, readList } from '../lib/pattern-helpers/member-list.ts';
import { createLocalKeyRing, rotateLocalKey } from '../lib/storage/local-key-ring.ts';
import { provision } from '../lib/storage/provision.ts';
import type { Row } from '../lib/storage/rows.ts';
import { openStorage, type Storage } from '../lib/storage/storage.ts';
import { model } from './fixtures/model.ts';
import { isQueued, httpClient as knowingClient, showMessages, sinceAborted } from './known-messages.ts';
import { testStorage } from './storage.ts';

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
/** Longer than an intent is hidden, also with the timing of production. */
const SETTLE_WITHIN_MS = 180_000;
const POLL_MS = 20;
/** How long the host holds a message. */
const HELD_FOR_SECONDS = 600;
/** The delay after a failure; the host waits for five seconds. */
const BACK_AFTER_SECONDS = 1;

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

/** Opens the model of the fixtures, with additional entities, on the storage account of the test file. */
export async function openWorld(url: string, more: readonly Entity[] = [], prefix = ''): Promise<World> {
  const entities = [...model.list, ...more];
  const connectionString = testStorage(url);
  const storage = openStorage({ connectionString, httpClient: knowingClient }, prefix);
  const keyFile = join(inject('folder'), `${randomUUID()}.json`);
  await rotateLocalKey(keyFile);
  const keys = createLocalKeyRing(keyFile);
  await provision(storage, resourcesOf(entities, Date.now()));
  const logged: string[] = [];
  const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };
  const consumers = { 'index-changes': consumeIntent, transfers: consumeTransfer };
  const queues = Object.keys(consumers);
  const consumer = { engine: createEngine(storage, { timing: PATIENT, keys }), entities, log };

  // Attempts by message id, counted here, because a test may have received a message before.
  const attempts = new Map<string, number>();
  // Messages that `take` received while it searched for another one.
  let held: (Message & { text: string })[] = [];
  // Calls of `take` that are between the two.
  let receiving = 0;

  async function putBack() {
    const all = held;
    held = [];
    await Promise.all(all.map(({ queue, text }) => storage.queue(queue).sendMessage(text)));
  }

  async function handleVisible() {
    await putBack();
    let handled = 0;
    for (const [queue, consume] of Object.entries(consumers)) {
      const client = storage.queue(queue);
      const { receivedMessageItems } = await client.receiveMessages({
        numberOfMessages: 16,
        visibilityTimeout: HELD_FOR_SECONDS,
      });
      handled += receivedMessageItems.length;
      await Promise.all(
        receivedMessageItems.map(async ({ messageId: id, popReceipt, messageText, insertedOn, dequeueCount }) => {
          // At least the second one, if a test has received the message.
          const attempt = Math.max((attempts.get(id) ?? 0) + 1, Math.min(dequeueCount, 2));
          attempts.set(id, attempt);
          const message = { queue, id, attempts: attempt, insertedAt: insertedOn.getTime(), body: parsed(messageText) };
          const isDone = await consume(consumer, message).then(
            () => true,
            () => false,
          );
          if (isDone) await client.deleteMessage(id, popReceipt);
          else await client.updateMessage(id, popReceipt, messageText, BACK_AFTER_SECONDS);
        }),
      );
    }
    return handled;
  }

  async function settleInTime(show: () => Promise<unknown> = async () => undefined) {
    const until = Date.now() + SETTLE_WITHIN_MS;
    for (let left = 1; left > 0; ) {
      if ((await handleVisible()) > 0) continue;
      left = 0;
      // Counted after all messages were handled, because an archive sends intents.
      for (const queue of queues) left += (await storage.queue(queue).getProperties()).approximateMessagesCount ?? 0;
      if (Date.now() > until) throw new Error(`The queues do not become empty: ${logged.slice(-3).join(' | ')}`);
      if (left === 0) return;
      await sleep(POLL_MS);
      await show();
    }
  }

  async function settle() {
    // A request without a response may still change storage, and the protocol relies on its time limit.
    const isSafe = () => sinceAborted() > PATIENT.hideIntentForSeconds * 1_000;
    await settleInTime(async () => {
      if (isSafe()) await Promise.all(queues.map((queue) => showMessages(storage.queue(queue))));
    });
  }

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
    return createEngine({ ...openStorage({ connectionString, httpClient }, prefix), clock }, { timing, keys });
  };
  return {
    storage,
    engine: createEngine(storage, { timing: PATIENT, keys }),
    queued: createEngine(storage, { timing: PATIENT, keys, settleInline: 0 }),
    keyFile,
    engineThrough,
    logged,
    handleVisible,
    settle,
    settleInTime: () => settleInTime(),
    take,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
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

/** Returns all rows of a table as plain objects in key order. */
export async function rowsOf(storage: Storage, table: string): Promise<Record<string, unknown>[]> {
  return Array.fromAsync(storage.table(table).listEntities<Record<string, unknown>>());
}

/**
 * Compares every index of an entity with its entities: no entry is missing, different or left over, and no claim,
 * tombstone or poison message exists. The expectation is computed from the declaration alone. Returns the entities.
 * Fails with the differences, without those that an earlier test of the file reported.
 */
export async function expectIndexesToAgree(storage: Storage, entity: Entity): Promise<Values[]> {
  const poison = await rowsOf(storage, POISON_TABLE);
  const rows = await rowsOf(storage, entity.table);
  const archived = entity.archive ? await rowsOf(storage, entity.archive.table) : [];
  const values: Values[] = [];
  const differences = [
    ...poison.map((row) => `poison message of ${row.Queue}: ${row.Reason}`),
    ...[...rows, ...archived].filter(({ EntityType }) => EntityType === 'tombstone').map(about('tombstone')),
    ...archived.filter(({ MovingFrom = '' }) => MovingFrom !== '').map(about('unfinished transfer')),
  ];
  for (const row of rows.filter(({ EntityType, SourceRow }) => EntityType === entity.name && SourceRow === undefined)) {
    const beside = rows.filter(({ partitionKey }) => partitionKey === row.partitionKey).map(toRow);
    const { row: joined } = joinRows(entity, toRow(row), furtherRowsOf(row, beside), groupsToRead(entity));
    const snapshot = toSnapshot(entity, joined);
    if (snapshot.state !== 'live') differences.push(about(`entity that is ${snapshot.state}`)(row));
    else if (snapshot.system.MovingFrom !== undefined) differences.push(about('unfinished transfer')(row));
    else values.push(snapshot.values);
  }
  const wanted = wantedEntries(entity, values);
  const found = new Map<string, Set<string>>();
  // Also the tables in which no entity has an entry now.
  const tables = new Set([entity, ...remoteIndexesOf(entity)].map(({ table }) => table));
  for (const table of tables)
    for (const row of await rowsOf(storage, table)) {
      const isList = row.EntityType === 'list';
      if (!isList && row.SourceRow === undefined) continue;
      if (row.Claim !== undefined) differences.push(about(`claim in ${table}`)(row));
      const address = { table, partition: String(row.partitionKey), row: String(row.rowKey) };
      const members = isList ? membersOf(await readList(storage, address)) : [];
      const copied = () => textOf(toValues(entity, row));
      const isTotal = Object.values(entity.totals).some((declared) => declared.table === table);
      const contents = isTotal
        ? [contributionOf(row)]
        : isList
          ? members
          : [JSON.stringify([row.SourcePartition, row.SourceRow]) + copied()];
      if (contents.length > 0) found.set(JSON.stringify([table, row.partitionKey, row.rowKey]), new Set(contents));
    }
  differences.push(...entryDifferences(wanted, found));
  for (const declared of Object.values(entity.totals))
    differences.push(...totalDifferences(await rowsOf(storage, declared.table), values, declared));
  for (const { target, field } of entity.countedBy)
    differences.push(...countDifferences(rows, values, { target: target(), field }));
  reportDifferences(differences.map((difference) => `${entity.name}: ${difference}`));
  return values;
}

function toRow(properties: Record<string, unknown>): Row {
  return {
    table: '',
    partition: String(properties.partitionKey),
    row: String(properties.rowKey),
    etag: '',
    properties,
  };
}

function furtherRowsOf({ rowKey }: Record<string, unknown>, rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ row }) => parseFurtherRowKey(row)?.row === rowKey);
}

/** Returns the expected index entries: the content of each row by its address. */
function wantedEntries(entity: Entity, values: readonly Values[]): Map<string, Set<string>> {
  const wanted = new Map<string, Set<string>>();
  const want = (table: string, partition: unknown, row: unknown, content: string) => {
    const key = JSON.stringify([table, partition, row]);
    wanted.set(key, (wanted.get(key) ?? new Set()).add(content));
  };
  for (const one of values) {
    const source = JSON.stringify([buildKey(entity.partition, one), buildKey(entity.row, one)]);
    const contributionBy = (declared: Total | undefined) => {
      const [SourcePartition, SourceRow] = JSON.parse(source);
      const fields = [...new Set([declared?.sum ?? [], declared?.min ?? [], declared?.max ?? []].flat())];
      return declared && contributionOf({ SourcePartition, SourceRow, Values: JSON.stringify(pick(one, fields)) });
    };
    const copyBy = (index: Index | undefined) => {
      if (!index || index.kind === 'index-entity' || index.copies === 'everything')
        return source + textOf(withoutApart(entity, one));
      return source + textOf(pick(one, [...entity.keyFields, ...(index.copies === 'keys' ? [] : index.copies)]));
    };
    for (const { index, table, partition, row, member } of indexEntriesOf(entity, one))
      want(table, partition, row, member ?? contributionBy(entity.totals[index]) ?? copyBy(entity.indexes[index]));
    for (const index of Object.values(entity.indexes)) {
      const partition = buildKey(entity.partition, one);
      if (index.kind === 'intra-partition' && isIndexed(index, one))
        want(entity.table, partition, buildKey(index.row, one), copyBy(index));
      if (index.kind === 'index-entity' && !index.remote && isIndexed(index, one))
        want(entity.table, partition, buildKey(index.row, one), buildKey(index.holds, one));
    }
  }
  return wanted;
}

function contributionOf({ SourcePartition, SourceRow, Values }: Record<string, unknown>): string {
  return JSON.stringify([SourcePartition, SourceRow]) + textOf(JSON.parse(String(Values)));
}

/** Compares the total of each group with its entities. The tests use amounts of at most two decimals. */
function totalDifferences(
  rows: readonly Record<string, unknown>[],
  values: readonly Values[],
  { partition, row, sum, min, max, when = () => true }: Total,
): string[] {
  const isThere = (value: unknown) => value !== undefined && value !== null;
  const counted = values.filter((one) => [...partition.fields, ...row.fields].every((field) => isThere(one[field])));
  const groups = Map.groupBy(counted.filter(when), (one) => `${buildKey(partition, one)} ${buildKey(row, one)}`);
  const hundredths = (value: unknown) => Math.round(Number(value) * 100);
  const expected = new Map(
    [...groups].map(([key, all]) => {
      const inGroup = (field: string) => all.map((one) => one[field] as string | number).filter(isThere);
      const extremes = (fields: readonly string[], sign: number) =>
        fields.flatMap((field) => {
          const [first] = inGroup(field).sort((one, other) => (one < other ? -sign : sign));
          return first === undefined ? [] : [[field, first]];
        });
      const sums = sum.map((field) => [
        field,
        inGroup(field).reduce((total: number, one) => total + hundredths(one), 0),
      ]);
      return [key, textOf({ count: all.length, sum: sums, min: extremes(min, 1), max: extremes(max, -1) })];
    }),
  );
  const actual = new Map(
    rows
      .filter(({ EntityType }) => EntityType === 'total')
      .map(({ partitionKey, rowKey, Amounts }) => {
        const amounts = JSON.parse(String(Amounts));
        const sums = sum.map((field) => [field, hundredths(amounts.sum[field])]);
        const inOrder = (fields: readonly string[], of: Values) =>
          fields.flatMap((field) => (isThere(of[field]) ? [[field, of[field]]] : []));
        const total = {
          count: amounts.count,
          sum: sums,
          min: inOrder(min, amounts.min),
          max: inOrder(max, amounts.max),
        };
        return [`${partitionKey} ${String(rowKey).slice('t_'.length)}`, textOf(total)];
      }),
  );
  return [...new Set([...expected.keys(), ...actual.keys()])]
    .filter((key) => expected.get(key) !== actual.get(key))
    .map((key) => `the total of ${key} is ${actual.get(key)}, but should be ${expected.get(key)}`);
}

function about(what: string) {
  return (row: Record<string, unknown>) => `${what}: ${JSON.stringify([row.partitionKey, row.rowKey])}`;
}

type Entries = ReadonlyMap<string, ReadonlySet<string>>;

function entryDifferences(wanted: Entries, found: Entries): string[] {
  const none = new Set<string>();
  return [...new Set([...wanted.keys(), ...found.keys()])].flatMap((key) => {
    const [expected, actual] = [wanted.get(key) ?? none, found.get(key) ?? none];
    return [
      ...[...expected].filter((content) => !actual.has(content)).map((content) => `missing in ${key}: ${content}`),
      ...[...actual].filter((content) => !expected.has(content)).map((content) => `left over in ${key}: ${content}`),
    ];
  });
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

/** Serializes a copy, so that copies compare as text. */
function textOf(values: Values): string {
  const there = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return inspect(Object.fromEntries(there.sort(([one], [other]) => (one < other ? -1 : 1))), {
    depth: null,
    maxArrayLength: null,
    maxStringLength: null,
    breakLength: Number.POSITIVE_INFINITY,
  });
}

/** Compares the count of each partition with the number of its entities. */
function countDifferences(
  rows: readonly Record<string, unknown>[],
  values: readonly Values[],
  { target, field }: { target: Entity; field: string },
): string[] {
  const expected = new Map<unknown, number>();
  for (const one of values) {
    const partition = buildKey(target.partition, one);
    expected.set(partition, (expected.get(partition) ?? 0) + 1);
  }
  const counted = rows
    .filter((row) => Number(row[field] ?? 0) !== 0)
    .map((row) => [row.partitionKey, row[field]] as const);
  const actual = new Map(counted);
  return [...new Set([...expected.keys(), ...actual.keys()])]
    .filter((partition) => expected.get(partition) !== actual.get(partition))
    .map(
      (key) => `${field} of ${JSON.stringify(key)} is ${actual.get(key) ?? 0}, but there are ${expected.get(key) ?? 0}`,
    );
}

let counter = 0;

/** Returns an employee that no other test uses. */
export function somebody(
  over: Values = {},
): Values & { department: string; employeeId: string; email: string; lastName: string } {
  counter += 1;
  const employeeId = String(counter).padStart(6, '0');
  return {
    department: 'Sales',
    employeeId,
    email: `${randomUUID()}@contoso.com`,
    firstName: 'Ann',
    lastName: `Last${counter}`,
    ...over,
  };
}
