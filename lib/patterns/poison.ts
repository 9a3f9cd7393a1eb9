import pMap from 'p-map';
import { z } from 'zod';
import { RowkeyError } from '../errors.ts';
import { sendMessage } from '../storage/messages.ts';
import { type Row, readRange, readRow, submit, tryAction } from '../storage/rows.ts';
import { countPoison } from '../telemetry/metrics.ts';
import type { Engine } from './engine.ts';
import { type NotedChange, noted } from './note-change.ts';
import { splitText } from './split-text.ts';

/**
 * A message that cannot succeed is taken off its queue and recorded, newest first, with its reason and its text, so that
 * an operator can send it again or drop it. What never can succeed comes here at once, the rest at its last attempt.
 */

export const POISON_TABLE = 'poison';
/** As `maxDequeueCount` in host.json: the host itself would move the message away after this attempt. */
export const MAX_ATTEMPTS = 5;
/** Failures that another attempt meets again. */
const POINTLESS = new Set<string>(['never-succeeds', 'too-large', 'invalid-input']);
const PARTITION = 'poison';
const REPLAYS_AT_ONCE = 8;
/** Whoever sends a message again has it for so long; where that one dies, another may. */
const REPLAY_FOR_MS = 60_000;
/** One string property holds 32 Ki code units; a message has 64 Ki at the most. */
const PART_LENGTH = 32_000;
const MAX_PARTS = 5;
/** The greatest instant that a date can be: what is subtracted from it sorts newest first. */
const LAST_INSTANT = 8_640_000_000_000_000;

export interface Message {
  readonly queue: string;
  readonly id: string;
  /** How often it was taken from its queue, this time included. */
  readonly attempts: number;
  /** Milliseconds. */
  readonly insertedAt: number;
  /** As the host gave it: parsed where it is JSON. */
  readonly body: unknown;
}

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

export interface Log {
  warn(text: string): void;
  error(text: string): void;
}

/**
 * Does the work of a message, and answers the reason where the message was recorded as poison. A failure is thrown, for the
 * host to bring the message back, until it is the last attempt or the work says that trying again is pointless: then the
 * message is recorded. Where the record fails, it is thrown too, and the host's own poison queue keeps the message.
 */
export async function handleMessage(
  engine: Engine,
  message: Message,
  log: Log,
  work: () => Promise<void>,
): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    const pointless = error instanceof RowkeyError && POINTLESS.has(error.code);
    const reason = reasonOf(error);
    if (!pointless && message.attempts < MAX_ATTEMPTS) {
      log.warn(`The message ${message.id} of ${message.queue} failed, attempt ${message.attempts}: ${reason}`);
      // The host logs what is thrown, and an error of an SDK may hold a key.
      throw new Error(reason);
    }
    await recordPoison(engine, message, reason);
    log.error(`The message ${message.id} of ${message.queue} is poison: ${reason}`);
    return reason;
  }
}

/** Records a message; once more for the same message changes nothing but the reason. */
export async function recordPoison(engine: Engine, message: Message, reason: string): Promise<void> {
  const { queue, id, attempts, insertedAt, body } = message;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const parts = splitText(text, PART_LENGTH);
  const row = `${String(LAST_INSTANT - insertedAt).padStart(16, '0')}_${id}`;
  const properties = {
    EntityType: POISON_TABLE,
    Queue: queue,
    Reason: reason,
    Attempts: attempts,
    InsertedAt: new Date(insertedAt).toISOString(),
    RecordedAt: new Date(engine.now()).toISOString(),
    ...Object.fromEntries(parts.map((part, index) => [`Text${index}`, part])),
  };
  await submit(engine.storage, {
    table: POISON_TABLE,
    partition: PARTITION,
    actions: [{ kind: 'upsert', row, properties }],
  });
  countPoison({ queue });
}

/** Newest first. */
export async function listPoison(
  { storage }: Engine,
  page: { after?: string | undefined; limit: number },
): Promise<{ items: Poison[]; more: boolean }> {
  const { rows, more } = await readRange(storage, { table: POISON_TABLE, partition: PARTITION, from: '', ...page });
  return { items: rows.map(toPoison), more };
}

/**
 * Sends the message to its queue once more and takes it off the list; safe to repeat, as handlers are idempotent. Throws `busy`
 * where somebody else is at it: what still fails would come back once for each of them.
 */
export async function replayPoison(engine: Engine, id: string): Promise<Poison> {
  const { storage, now } = engine;
  const row = await readRow(storage, poisonAddress(id));
  if (!row) throw notListed();
  const properties = { ReplayedUntil: new Date(now() + REPLAY_FOR_MS).toISOString() };
  const isFree = !(Date.parse(String(row.properties.ReplayedUntil)) > now());
  if (!isFree || !(await tryAction(storage, row, { kind: 'merge', row: row.row, properties, etag: row.etag })))
    throw new RowkeyError('busy', 'The message is being sent again now. Try again.', { retryAfter: 1 });
  const poison = toPoison(row);
  await noted(engine, changeOf('replay', id), () => sendMessage(storage, poison.queue, poison.text));
  await tryAction(storage, row, { kind: 'delete', row: row.row });
  return poison;
}

/** Which messages are sent again together: of this queue, and with this in their reason. */
export const PoisonFilter = z.strictObject({ queue: z.string().optional(), reason: z.string().optional() });

/** Sends those of a page again that the filter takes in. Answers their ids; one that another operator took is left out. */
export async function replayPage(
  engine: Engine,
  { queue, reason, ...page }: z.infer<typeof PoisonFilter> & { after?: string | undefined; limit: number },
): Promise<{ replayed: string[]; last: string | undefined; more: boolean }> {
  const { items, more } = await listPoison(engine, page);
  const wanted = items.filter(
    (poison) => (!queue || poison.queue === queue) && (!reason || poison.reason.includes(reason)),
  );
  const replayed = await pMap(
    wanted,
    async ({ id }) => {
      try {
        await replayPoison(engine, id);
        return id;
      } catch (error) {
        if (error instanceof RowkeyError && ['not-found', 'busy'].includes(error.code)) return undefined;
        throw error;
      }
    },
    { concurrency: REPLAYS_AT_ONCE },
  );
  return { replayed: replayed.filter((id) => id !== undefined), last: items.at(-1)?.id, more };
}

/** Takes a message off the list for good. */
export async function dropPoison(engine: Engine, id: string): Promise<void> {
  const address = poisonAddress(id);
  await noted(engine, changeOf('drop', id), async () => {
    if (!(await tryAction(engine.storage, address, { kind: 'delete', row: address.row }))) throw notListed();
  });
}

function changeOf(operation: 'replay' | 'drop', id: string): NotedChange {
  return { operation, entity: POISON_TABLE, address: poisonAddress(id) };
}

function notListed(): RowkeyError {
  return new RowkeyError('not-found', 'There is no such poison message.');
}

function poisonAddress(id: string) {
  // Nothing but what this module makes, so that no character needs escaping.
  if (!/^\d{16}_[\w-]+$/.test(id)) throw notListed();
  return { table: POISON_TABLE, partition: PARTITION, row: id };
}

function toPoison({ row, properties }: Row): Poison {
  const text = Array.from({ length: MAX_PARTS }, (_, part) => properties[`Text${part}`] ?? '').join('');
  const { Queue, Reason, Attempts, InsertedAt, RecordedAt } = properties;
  return {
    id: row,
    queue: String(Queue),
    reason: String(Reason),
    attempts: Number(Attempts),
    insertedAt: String(InsertedAt),
    recordedAt: String(RecordedAt),
    text,
  };
}

/** Of an error of ours the message, which is made to be shown; of another only its kind, as it may hold anything. */
function reasonOf(error: unknown): string {
  if (error instanceof RowkeyError) return error.message;
  return error instanceof Error ? `an unexpected ${error.name}` : 'an unexpected failure';
}
