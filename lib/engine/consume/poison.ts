import pMap from 'p-map';
import { z } from 'zod';
import { ROW_TYPES } from '../../base/engine-names.ts';
import { busy, hasCode, RowkeyError } from '../../base/errors.ts';
import { jsonText } from '../../base/json-text.ts';
import { isoInstant, MINUTE_MS } from '../../base/time.ts';
import { splitText } from '../../define/codec/entity-codec.ts';
import { buildKey, buildKeys, compileTemplate } from '../../define/keys/key-template.ts';
import { awayIn, unlessAway } from '../../storage/errors.ts';
import { sendMessage } from '../../storage/messages.ts';
import {
  type Address,
  deleteSame,
  type Row,
  readRange,
  readRow,
  submit,
  tryAction,
  trySubmit,
} from '../../storage/rows.ts';
import { accountOfQueue } from '../../storage/storage.ts';
import { count } from '../../telemetry/metrics.ts';
import type { Engine } from '../engine.ts';
import { makeAndNote, type NotedChange } from '../note-change.ts';
import { type Message, unwrap } from '../reconcile/hold.ts';
import { existingPart, isPartOf } from '../reconcile/queues.ts';

/** The records of messages that cannot succeed, newest first, with the reason and the text of each. An operator sends a message again or drops it. */

export const POISON_TABLE = ROW_TYPES.poison;
/** Many messages fail at the same time, so the newest rows must not share one partition. */
const PARTITION = compileTemplate('poison_{id%16}');
/** Includes the single partition of earlier releases. */
const PARTITIONS = ['poison', ...buildKeys(PARTITION, {})];
const READING = { concurrency: PARTITIONS.length };
const REPLAYS_CONCURRENCY = 8;
/** The form of the ids of this module. No character needs escaping. */
const ID = /^\d{16}_[\w-]+$/;
/**
 * How long a request may take to replay a message. If the request dies, another request may replay the message after this
 * time.
 */
const REPLAY_FOR_MS = MINUTE_MS;
/** A string property holds 32 Ki code units; a message has at most 64 Ki. */
const PART_LENGTH = 32_000;
const MAX_PARTS = 5;
/** The largest time value of a `Date`. Subtracting an instant from it sorts newest first. */
const LAST_INSTANT = 8_640_000_000_000_000;

export const Poison = z.object({
  id: z.string(),
  queue: z.string(),
  reason: z.string(),
  attempts: z.int(),
  insertedAt: z.iso.datetime(),
  recordedAt: z.iso.datetime(),
  text: z.string(),
});
export type Poison = z.infer<typeof Poison>;

/** Records a message. Recording the same work again changes only the reason. */
export async function recordPoison(engine: Engine, message: Message, reason: string): Promise<void> {
  const { queue } = message;
  const { body, history } = unwrap(message);
  const { id, attempts, since: insertedAt } = history;
  const text = typeof body === 'string' ? body : jsonText(body);
  const parts = splitText(text, PART_LENGTH);
  const row = `${String(LAST_INSTANT - insertedAt).padStart(16, '0')}_${id}`;
  if (!ID.test(row)) throw new TypeError('A message with this id or age cannot be recorded.');
  const properties = {
    EntityType: POISON_TABLE,
    Queue: queue,
    Reason: reason,
    Attempts: attempts,
    InsertedAt: isoInstant(insertedAt),
    RecordedAt: isoInstant(engine.now()),
    ...Object.fromEntries(parts.map((part, index) => [`Text${index}`, part])),
  };
  await submit(engine.storage, {
    table: POISON_TABLE,
    partition: buildKey(PARTITION, { id: row }),
    actions: [{ kind: 'upsert', row, properties }],
    // Without a record, the message returns and is recorded then.
    isRepeatable: true,
  });
  const { name: account } = accountOfQueue(engine.storage, queue);
  const labels = { queue: engine.storage.queue(queue).name };
  count.poison(account === undefined ? labels : { ...labels, account });
}

/**
 * Lists messages newest first, over all partitions. Reads the ids of a page from each partition, then the rows of the page,
 * so texts are read only if they are returned: at most two range queries per partition. Of several accounts, names those that are away.
 */
export async function listPoison(
  { storage }: Engine,
  { after, limit }: { after?: string | undefined; limit: number },
): Promise<{ items: Poison[]; more: boolean; away: string[] }> {
  const table = POISON_TABLE;
  const select = ['EntityType'];
  const read = (partition: string) =>
    unlessAway(readRange(storage, { table, partition, from: '', after, limit, select }));
  const found = await pMap(PARTITIONS, read, READING);
  const ids = found.flatMap(({ result }) => result?.rows ?? []).sort(byRow);
  const page = new Map(ids.slice(0, limit).map((row) => [row.row, row]));
  const lasts = new Map([...page.values()].map(({ partition, row }) => [partition, row]));
  const readPage = ([partition, last]: [string, string]) =>
    unlessAway(readRange(storage, { table, partition, from: '', after, before: `${last}~` }));
  const texts = await pMap(lasts, readPage, READING);
  // Other messages may have been recorded meanwhile.
  const rows = texts.flatMap(({ result }) => result?.rows.filter(({ row }) => page.has(row)) ?? []).sort(byRow);
  const more = ids.length > limit || found.some(({ result }) => result?.more);
  return { items: rows.map(toPoison), more, away: awayIn([...found, ...texts]) };
}

function byRow({ row: one }: Row, { row: other }: Row): number {
  return one < other ? -1 : 1;
}

/**
 * Sends the message to its queue again and removes it from the list. Safe to repeat, because handlers are idempotent. Throws
 * `busy` while another request replays the message: a message that still fails would be recorded once for each request.
 */
export async function replayPoison(engine: Engine, id: string): Promise<Poison> {
  const { storage, now } = engine;
  const row = await findPoison(engine, id);
  if (!row) throw notFound();
  const properties = { ReplayedUntil: isoInstant(now() + REPLAY_FOR_MS) };
  const isFree = !(Date.parse(String(row.properties.ReplayedUntil)) > now());
  const merge = { kind: 'merge', row: row.row, properties, etag: row.etag } as const;
  const marked = isFree && (await trySubmit(storage, { ...row, actions: [merge] }));
  if (!marked) throw new RowkeyError('busy', 'Another request is replaying the message. Try again.', { retryAfter: 1 });
  const poison = toPoison(row);
  await makeAndNote(engine, changeOf('replay', row), () =>
    sendMessage(storage, existingPart(engine, poison.queue), poison.text),
  );
  // The message may have failed again, and been recorded, since.
  const isSame = (left: Row) => left.properties.ReplayedUntil === properties.ReplayedUntil;
  await deleteSame(storage, { ...row, etag: marked.get(row.row) ?? row.etag }, isSame);
  return poison;
}

/** Selects messages by their queue, whose name stands for all of its parts in all accounts, by a text that the reason contains, or by both. */
export const PoisonFilter = z.strictObject({ queue: z.string().optional(), reason: z.string().optional() });

/**
 * Replays the messages of a page that match the filter. Returns their ids, without those that another request replays, and the accounts that
 * are away, whose messages stay. A message that cannot be sent, such as one of a queue that does not exist, stays too, and is in `failed`.
 */
export async function replayPage(
  engine: Engine,
  { queue, reason, ...page }: z.infer<typeof PoisonFilter> & { after?: string | undefined; limit: number },
): Promise<{ replayed: string[]; failed: string[]; last: string | undefined; more: boolean; away: string[] }> {
  const { items, more, away } = await listPoison(engine, page);
  const wanted = items.filter(
    (poison) => (!queue || isPartOf(poison.queue, queue)) && (!reason || poison.reason.includes(reason)),
  );
  const failed: string[] = [];
  const replay = async (id: string) => {
    try {
      return await unlessAway(replayPoison(engine, id));
    } catch (error) {
      if (!hasCode(error, 'not-found', 'busy')) failed.push(id);
      return { result: undefined, away: undefined };
    }
  };
  const sent = await pMap(wanted, ({ id }) => replay(id), { concurrency: REPLAYS_CONCURRENCY });
  const replayed = sent.flatMap(({ result }) => result?.id ?? []);
  const last = items.at(-1)?.id;
  return { replayed, failed, last, more, away: awayIn([...away.map((name) => ({ away: name })), ...sent]) };
}

/** Removes a message from the list without replaying it. */
export async function dropPoison(engine: Engine, id: string): Promise<void> {
  const address = await findPoison(engine, id);
  if (!address) throw notFound();
  await makeAndNote(engine, changeOf('drop', address), async () => {
    const action = { kind: 'delete', row: address.row, etag: address.etag } as const;
    // If the record is gone, this request may have deleted it and not received the reply.
    if (!(await tryAction(engine.storage, address, action)) && (await findPoison(engine, id)))
      throw busy('The message was replayed or recorded again.');
  });
}

function changeOf(operation: 'replay' | 'drop', { table, partition, row }: Address): NotedChange {
  return { operation, entity: POISON_TABLE, address: { table, partition, row } };
}

function notFound(): RowkeyError {
  return new RowkeyError('not-found', 'Poison message not found.');
}

/** Finds the row of a message in its partition or in that of earlier releases. */
async function findPoison({ storage }: Engine, id: string): Promise<Row | undefined> {
  if (!ID.test(id)) return undefined;
  const [earlier = ''] = PARTITIONS;
  const find = (partition: string) => readRow(storage, { table: POISON_TABLE, partition, row: id });
  return (await find(buildKey(PARTITION, { id }))) ?? find(earlier);
}

function toPoison({ row, properties }: Row): Poison {
  const text = Array.from({ length: MAX_PARTS }, (_, part) => properties[`Text${part}`] ?? '').join('');
  const { Queue, Reason, Attempts, InsertedAt, RecordedAt } = properties;
  return {
    id: row,
    queue: String(Queue),
    reason: String(Reason),
    // Rows are also changed by hand.
    attempts: Number.isInteger(Attempts) ? Number(Attempts) : 0,
    insertedAt: toInstant(InsertedAt),
    recordedAt: toInstant(RecordedAt),
    text,
  };
}

function toInstant(stored: unknown): string {
  const instant = Date.parse(String(stored));
  return isoInstant(Number.isNaN(instant) ? 0 : instant);
}
