import { createHash, randomUUID } from 'node:crypto';
import pMap from 'p-map';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { busy, RowkeyError } from '../base/errors.ts';
import { recentFor } from '../base/once.ts';
import { backOff, DAY_MS, HOUR_MS, isoInstant, MINUTE_MS, SECOND_MS } from '../base/time.ts';
import { countDeeds, type Deed, describeLimit, type RequestLimit } from '../define/declaration/request-limit.ts';
import { rangeOfPrefix } from '../define/keys/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { runUnexplained } from '../storage/explain.ts';
import { type Address, type Row, readRow, scanTable, tryAction, trySubmit } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Storage } from '../storage/storage.ts';
import { type Caller, isVisitor } from './token.ts';
import { admitVisitor, deleteOldKeys, hashAddress } from './visitors.ts';

/**
 * Limits of requests. Each caller has a row for each limit, with the number of requests that processes have taken of the current window.
 * A process takes a share of what is left under the ETag of the row, admits as many requests without storage, and then takes the next one.
 * So the processes together never admit more than the limit. They may admit less: what a process has taken and does not use is lost at the
 * end of the window, and so is a share of which the reply is lost.
 *
 * A share is a quarter of what is left. The shares of a limit become smaller, so a process that is not asked again keeps at most a
 * quarter of what was left, and the number of shares grows with the logarithm of the limit.
 */
const SHARES = 4;
/** The most counters that a process remembers, of callers with a token and of visitors. A forgotten one costs a read, and the rest of its share. */
const MAX_COUNTERS = 20_000;
const MAX_VISITOR_COUNTERS = 20_000;
/** Each conflict means that another process has taken a share, and a limit has fewer shares than this. */
const TAKE_ATTEMPTS = 64;
const BACK_OFF_MS = 5;
const LONGEST_BACK_OFF_MS = 100;
const ROW_TYPE = ROW_TYPES.requests;
/** Begins the partition key of each caller. */
const PARTITION_HEAD = SYSTEM_PARTITIONS.requests;
/** Begins the partition key of each address of visitors. A hash begins with none of its letters. */
const VISITOR_HEAD = `${PARTITION_HEAD}v`;
/** A caller who returns within this time costs no delete. */
const KEPT_MS = 30 * DAY_MS;
/** An address has another hash each day. */
const VISITORS_KEPT_MS = DAY_MS;
const DELETED_PAGE = 1_000;
const DELETES_CONCURRENCY = 16;
const WINDOW_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

/** What this process knows of the row of a caller and a limit. */
interface Counter {
  readonly address: Address;
  /** The start of the window (milliseconds). A process whose clock is ahead may have begun the next one. */
  window: number;
  /** The requests that this process may admit before it takes another share. */
  share: number;
  /** The requests of the window that processes have taken, at least. */
  taken: number;
  /** Undefined if the row must be read. */
  etag: string | undefined;
  /** Concurrent requests wait for one share. */
  taking: Promise<void> | undefined;
}

const countersOf = recentFor<Storage, Counter>(MAX_COUNTERS);
/** Addresses are many, and would push out the counters of other callers. */
const visitorCountersOf = recentFor<Storage, Counter>(MAX_VISITOR_COUNTERS);

/** What a request is counted as. */
interface Counted {
  readonly limits: readonly RequestLimit[];
  readonly caller: Caller;
  /** The roles of the caller that admit it to the operation. */
  readonly roles: readonly string[];
  /** The entity that the request is for, if there is one. */
  readonly entity: string | undefined;
  readonly operation?: string;
  readonly deeds: readonly Deed[];
}

interface Charge {
  readonly limit: RequestLimit;
  readonly times: number;
}

/**
 * Counts a request under the first of the roles whose limits have room for it. A role without a limit of the request admits it uncounted.
 * Throws `too-many-requests`, `too-large` for more than a limit ever admits, and `storage-unavailable`: a request that cannot be counted is not admitted.
 */
export async function countRequest(
  engine: Engine,
  { limits, caller, roles, entity, operation, deeds }: Counted,
): Promise<void> {
  const concerned = limits.filter(
    (limit) => [undefined, entity].includes(limit.entity) && [undefined, operation].includes(limit.operation),
  );
  const byRole = roles.map((role) =>
    concerned
      .filter((limit) => limit.role === role)
      .map((limit): Charge => ({ limit, times: countDeeds(limit, deeds) }))
      .filter(({ times }) => times > 0),
  );
  if (byRole.some((charges) => charges.length === 0)) return;
  const counted = { isVisitor: isVisitor(caller), partition: await partitionOf(engine, caller) };
  let refusal: RowkeyError | undefined;
  for (const charges of byRole) {
    // What is counted concerns the process, so an explained request counts like another one, and its steps do not list it.
    const found = await runUnexplained(() => charge(engine, counted, charges));
    if (!found) return;
    refusal ??= found;
  }
  if (refusal) throw refusal;
}

/** As whom the rows of a caller count. */
interface CountedAs {
  readonly isVisitor: boolean;
  readonly partition: string;
}

/** Counts the request under all of these limits, or under none: then returns the error. */
async function charge(engine: Engine, as: CountedAs, charges: readonly Charge[]): Promise<RowkeyError | undefined> {
  const counters = charges.map(({ limit, times }) => ({ limit, times, counter: counterOf(engine, as, limit) }));
  for (;;) {
    const short = counters.find(({ limit, times, counter }) => {
      return counter.window < windowAt(limit, engine.now()) || counter.share < times;
    });
    if (!short) {
      for (const { counter, times } of counters) counter.share -= times;
      return undefined;
    }
    const { limit, times, counter } = short;
    const refusal = refusalOf(engine, limit, times, counter);
    if (refusal) return refusal;
    // Once for a share: concurrent requests of one address would use up what the process does for all visitors.
    const admit = async () => as.isVisitor && admitVisitor(engine.storage);
    counter.taking ??= admit()
      .then(() => takeShare(engine, limit, times, counter))
      .finally(() => {
        counter.taking = undefined;
      });
    await counter.taking;
  }
}

/** The error of a request for which not enough is left, as far as the process knows; it takes no storage transaction. */
function refusalOf(
  { now }: Engine,
  limit: RequestLimit,
  times: number,
  { window, share, taken }: Counter,
): RowkeyError | undefined {
  const { role, requests, per } = limit;
  const accepted = describeLimit(limit);
  if (times > requests)
    return new RowkeyError('too-large', `The role "${role}" may not do this ${times} times in one request.`, {
      accepted,
    });
  if (window < windowAt(limit, now()) || times - share <= requests - taken) return undefined;
  return new RowkeyError('too-many-requests', `The role "${role}" has a limit of ${accepted}, which is reached.`, {
    accepted,
    retryAfter: Math.max(1, Math.ceil((window + WINDOW_MS[per] - now()) / SECOND_MS)),
  });
}

/** Takes a share of what is left, at least the missing requests. If less than these is left, takes nothing. */
async function takeShare(engine: Engine, limit: RequestLimit, times: number, counter: Counter): Promise<void> {
  const { address } = counter;
  for (let attempt = 1; attempt <= TAKE_ATTEMPTS; attempt += 1) {
    if (counter.etag === undefined) learn(counter, await readRow(engine.storage, address));
    const current = windowAt(limit, engine.now());
    if (counter.window < current) Object.assign(counter, { window: current, share: 0, taken: 0 });
    const left = limit.requests - counter.taken;
    const missing = times - counter.share;
    if (missing > left) return;
    const share = Math.max(missing, Math.ceil(left / SHARES));
    const take = randomUUID();
    const taken = counter.taken + share;
    const properties = { EntityType: ROW_TYPE, Window: isoInstant(counter.window), Taken: taken, Take: take };
    const { etag } = counter;
    // Unknown until storage replies.
    counter.etag = undefined;
    const etags = await trySubmit(engine.storage, {
      ...address,
      actions: [
        etag
          ? { kind: 'replace', row: address.row, properties, etag }
          : { kind: 'insert', row: address.row, properties },
      ],
      // A second insert is rejected, and the row tells whose it is.
      isRepeatable: true,
    });
    const found = etags ? undefined : await readRow(engine.storage, address);
    if (etags || found?.properties.Take === take) {
      Object.assign(counter, { share: counter.share + share, taken, etag: etags?.get(address.row) ?? found?.etag });
      return;
    }
    learn(counter, found);
    await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
  }
  throw busy('Other requests of the same caller are being counted.');
}

/** Learns from the row what other processes have taken. */
function learn(counter: Counter, row: Row | undefined): void {
  if (!row) return;
  const window = Date.parse(String(row.properties.Window));
  const taken = Number(row.properties.Taken);
  counter.etag = row.etag;
  if (window < counter.window) return;
  if (window > counter.window) Object.assign(counter, { window, share: 0 });
  counter.taken = taken;
}

function windowAt({ per }: RequestLimit, now: number): number {
  return Math.floor(now / WINDOW_MS[per]) * WINDOW_MS[per];
}

function counterOf({ storage }: Engine, { isVisitor, partition }: CountedAs, limit: RequestLimit): Counter {
  const address = { table: SYSTEM_TABLE, partition, row: rowOf(limit) };
  const counters = isVisitor ? visitorCountersOf(storage) : countersOf(storage);
  const id = `${address.partition}/${address.row}`;
  const known = counters.get(id) ?? { address, window: 0, share: 0, taken: 0, etag: undefined, taking: undefined };
  counters.set(id, known);
  return known;
}

/** A subject may be personal data, and have characters that keys cannot have. Visitors without an address are one caller. */
async function partitionOf(engine: Engine, { subject, address }: Caller): Promise<string> {
  if (address === undefined) return `${PARTITION_HEAD}${hash(subject)}`;
  return `${VISITOR_HEAD}${await runUnexplained(() => hashAddress(engine, address))}`;
}

/** A limit whose number changes goes on counting. */
function rowOf({ role, entity, operation, action, per }: RequestLimit): string {
  return hash(JSON.stringify([role, entity, action, per, ...(operation === undefined ? [] : [operation])]));
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Deletes the counts of callers who have made no such request for a month, and those of addresses after their day, each under its ETag, and the
 * keys of past days. Returns how many counts. A process that remembers a deleted row reads again and inserts it.
 */
export async function deleteOldCounts(engine: Engine): Promise<number> {
  await deleteOldKeys(engine);
  const ofVisitors = await deleteCounts(engine, VISITOR_HEAD, VISITORS_KEPT_MS);
  return ofVisitors + (await deleteCounts(engine, PARTITION_HEAD, KEPT_MS));
}

async function deleteCounts({ storage, now }: Engine, head: string, keptMs: number): Promise<number> {
  const { before: beforePartition } = rangeOfPrefix(head);
  const where = [{ name: 'Window', operator: 'lt' as const, values: [isoInstant(now() - keptMs)] }];
  let deleted = 0;
  let after: Pick<Address, 'partition' | 'row'> | undefined = { partition: head, row: '' };
  while (after) {
    const scan = { table: SYSTEM_TABLE, type: ROW_TYPE, where, after, beforePartition, limit: DELETED_PAGE };
    const { rows, more } = await scanTable(storage, scan);
    const gone = await pMap(
      rows,
      ({ etag, row, ...place }) => tryAction(storage, { ...place, isRepeatable: true }, { kind: 'delete', row, etag }),
      { concurrency: DELETES_CONCURRENCY },
    );
    deleted += gone.filter(Boolean).length;
    after = more ? rows.at(-1) : undefined;
  }
  return deleted;
}
