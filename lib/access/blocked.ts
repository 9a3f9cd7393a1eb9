import { createHash } from 'node:crypto';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { RowkeyError } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { isoInstant, MINUTE_MS, SECOND_MS } from '../base/time.ts';
import type { Engine } from '../engine/engine.ts';
import { makeAndNote } from '../engine/note-change.ts';
import { runUnexplained } from '../storage/explain.ts';
import { type Address, readRange, submit, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Storage } from '../storage/storage.ts';
import { type Caller, isVisitor } from './token.ts';

/**
 * Users whose requests are rejected although their tokens are valid: nobody can withdraw a token, which lasts an hour. Each process reads the list
 * of them again after some seconds, one storage transaction for a thousand, and not once for each request.
 */

const PARTITION = SYSTEM_PARTITIONS.blocked;
/** The entity that the audit log names. */
const USERS = 'users';
/** So long another process may accept a user whom this one has blocked. */
const READ_AGAIN_AFTER_MS = 10 * SECOND_MS;
/** While storage does not respond, the list that was read last decides for so long. */
const LASTS_MS = 5 * MINUTE_MS;

interface Known {
  readonly at: number;
  /** Row keys. */
  readonly rows: ReadonlySet<string>;
}

interface Memory {
  known?: Known | undefined;
  reading?: Promise<Known> | undefined;
}

const memoryOf = keptFor((_: Storage): Memory => ({}));

/** Throws `forbidden` for a user who is blocked, and `storage-unavailable` if nobody knows. */
export async function requireUnblocked(engine: Engine, caller: Caller): Promise<void> {
  if (isVisitor(caller)) return;
  const { rows } = await currentList(engine);
  if (rows.has(rowOf(caller.subject))) throw new RowkeyError('forbidden', 'The user is blocked.');
}

async function currentList(engine: Engine): Promise<Known> {
  const memory = memoryOf(engine.storage);
  const { known } = memory;
  const age = known ? engine.now() - known.at : Number.POSITIVE_INFINITY;
  if (known && age >= 0 && age < READ_AGAIN_AFTER_MS) return known;
  memory.reading ??= startReading(engine, memory);
  return memory.reading.catch((error: unknown) => {
    if (known && age < LASTS_MS) return known;
    throw error;
  });
}

/** What is read counts unless somebody is blocked or unblocked in the meantime. */
function startReading(engine: Engine, memory: Memory): Promise<Known> {
  const reading = readAll(engine);
  const end = (known?: Known) => {
    if (memory.reading === reading) Object.assign(memory, { reading: undefined, ...(known ? { known } : {}) });
  };
  reading.then(end, () => end());
  return reading;
}

async function readAll({ storage, now }: Engine): Promise<Known> {
  const at = now();
  const range = { table: SYSTEM_TABLE, partition: PARTITION, from: '', select: [] };
  const { rows } = await runUnexplained(() => readRange(storage, range));
  return { at, rows: new Set(rows.map(({ row }) => row)) };
}

/** Rejects the requests of a user: of this process at once, of others after some seconds. */
export async function blockUser(engine: Engine, subject: string): Promise<void> {
  const address = addressOf(subject);
  const properties = { EntityType: ROW_TYPES.blocked, Subject: subject, BlockedAt: isoInstant(engine.now()) };
  await makeAndNote(engine, { operation: 'block', entity: USERS, address, subject }, () =>
    submit(engine.storage, { ...address, actions: [{ kind: 'upsert', row: address.row, properties }] }),
  );
  forget(engine);
}

/** Accepts the requests of a user again. Throws `not-found`. */
export async function unblockUser(engine: Engine, subject: string): Promise<void> {
  const address = addressOf(subject);
  await makeAndNote(engine, { operation: 'unblock', entity: USERS, address, subject }, async () => {
    if (!(await tryAction(engine.storage, address, { kind: 'delete', row: address.row })))
      throw new RowkeyError('not-found', 'The user is not blocked.');
  });
  forget(engine);
}

/** A list that is being read may be of before. After a failure it is kept: while storage is away, it decides. */
function forget({ storage }: Engine): void {
  const memory = memoryOf(storage);
  memory.known = undefined;
  memory.reading = undefined;
}

interface Blocked {
  readonly subject: string;
  readonly blockedAt: string;
}

/** Lists the users who are blocked, in no particular order. `next` is where the next page starts. */
export async function listBlocked(
  { storage }: Engine,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<{ items: Blocked[]; next: string | undefined }> {
  const { rows, more } = await readRange(storage, {
    table: SYSTEM_TABLE,
    partition: PARTITION,
    from: '',
    after,
    limit,
  });
  const items = rows.map(({ properties }) => ({
    subject: String(properties.Subject),
    blockedAt: String(properties.BlockedAt),
  }));
  return { items, next: more ? rows.at(-1)?.row : undefined };
}

/** Hashed, because a subject may contain characters and lengths that keys cannot have. */
function rowOf(subject: string): string {
  return createHash('sha256').update(subject).digest('hex');
}

function addressOf(subject: string): Address {
  return { table: SYSTEM_TABLE, partition: PARTITION, row: rowOf(subject) };
}
