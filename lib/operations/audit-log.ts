import { AsyncLocalStorage } from 'node:async_hooks';
import { isOutcomeUnknown, unavailable } from '../base/errors.ts';
import { jsonText } from '../base/json-text.ts';
import { isoInstant } from '../base/time.ts';
import { periodsBetween } from '../define/keys/calendar.ts';
import type { Engine } from '../engine/engine.ts';
import { ChangeRecord } from '../engine/note-change.ts';
import type { Position } from '../engine/read/continuation.ts';
import { appendBlock, createAppendBlob, listBlobs, readLines } from '../storage/append-blobs.ts';
import { AUDIT_CONTAINER, accountOfContainer } from '../storage/blob-owner.ts';
import { blobLength } from '../storage/blobs.ts';
import { ofAccount, StorageConflict, unlessAway } from '../storage/errors.ts';
import { recordIfExplaining } from '../storage/explain.ts';
import { slotOf } from '../storage/slots.ts';
import { accountsOf, type Storage } from '../storage/storage.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Log data in blobs pattern: each change is one JSON line in `slot/yyyy/MM/dd/HH00/nnnnnn.log`. The name has the hour of the
 * change, so a reader lists a day by its prefix and reads no other hour. The slot is that of the day, so that names do not begin
 * with a time, which would bring the newest of all days to one server. Earlier releases wrote names without it.
 *
 * Group commit: if no append is running, a record is appended immediately; records that arrive during an append share the
 * next block. Each process writes its own blobs and appends at the length it expects, so after a lost reply the blob's length
 * shows whether the block was stored. If any other outcome is unknown, the same records go into a new blob, and readers skip a
 * record whose id they have already seen in that hour.
 *
 * With several accounts, the log is in one of them. While that account is away, processes append in another one, so that the others serve
 * changes; readers read the blobs of all accounts. Names outside the first account end with the account, so that each is unique.
 *
 * A blob is created and appended to, and never changed otherwise: the container may be immutable, which allows nothing else. So
 * the metadata has the time of the first record only. The last one was stored when the blob was last modified.
 */

export interface AuditLog {
  /** Resolves once all records are stored. Throws `storage-unavailable`; the records then go into the next append. */
  append(changes: readonly ChangeRecord[]): Promise<void>;
  /**
   * Appends the records of earlier, failed appends. Await it before making a change: then no change is made while records
   * cannot be stored, and a repeated request does not succeed before its record is stored. Throws `storage-unavailable`.
   */
  catchUp(): Promise<void>;
}

/** https://learn.microsoft.com/rest/api/storageservices/append-block */
const MAX_BLOCKS = 50_000;
/** The smallest limit of all service versions. */
const MAX_BLOCK_BYTES = 4 * 1_024 * 1_024;
/** One attempt in the open blob and one in a new blob. An account that is away gets one, before the next account. */
const ATTEMPTS = 2;
const ATTEMPT_WITHIN_MS = 10_000;
/** So long a process appends in another account before it tries the log's own again. */
const ELSEWHERE_MS = 60_000;

interface Line {
  readonly hour: string;
  readonly at: string;
  readonly bytes: Buffer;
}

interface OpenBlob {
  readonly account: Storage;
  readonly container: string;
  readonly name: string;
  length: number;
  blocks: number;
}

/** An append belongs to the process, so its storage calls are not counted in the request that triggers it. */
const inProcess = AsyncLocalStorage.snapshot();

/** Creates the appender of a process. Create one for each storage account and process. */
export function createAuditLog(engine: Engine, { maxBlocks = MAX_BLOCKS } = {}): AuditLog {
  const accounts = accountsOfLog(engine.storage);
  let [inUse, elsewhereUntil] = [0, 0];
  const open = new Map<string, OpenBlob>();
  /** Records to store, in order of arrival. The running append has the first ones. */
  const waiting: Line[] = [];
  let received = 0;
  let stored = 0;
  let isRunning = false;
  let isBehind = false;
  let progress = newProgress();

  async function waitUntilStored(count: number): Promise<void> {
    while (stored < count) {
      if (!isRunning) void inProcess(inPattern('log in blobs', run));
      await progress.promise;
    }
  }

  async function run(): Promise<void> {
    isRunning = true;
    try {
      for (let block = firstBlock(waiting); block.length > 0; block = firstBlock(waiting)) {
        await store(block);
        waiting.splice(0, block.length);
        stored += block.length;
        const { resolve } = progress;
        progress = newProgress();
        resolve();
      }
      isBehind = false;
    } catch (error) {
      // Every waiting caller gets the error. The records stay first in the queue.
      isBehind = true;
      const { reject } = progress;
      progress = newProgress();
      reject(unavailable('The audit log cannot be written. No change is acknowledged until it is recorded.', error));
    } finally {
      isRunning = false;
    }
  }

  async function store(block: readonly Line[]): Promise<void> {
    const [first] = block;
    if (!first) return;
    const bytes = Buffer.concat(block.map((line) => line.bytes));
    const start = performance.now() < elsewhereUntil ? inUse : 0;
    for (let tried = 1; ; tried += 1) {
      const index = (start + tried - 1) % accounts.length;
      const account = accounts[index] ?? engine.storage;
      const { result: isStored, away } = await unlessAway(ofAccount(account, storeIn(account, first, bytes)));
      if (isStored) {
        if (index !== start) elsewhereUntil = performance.now() + ELSEWHERE_MS;
        inUse = index;
        return;
      }
      if (tried === accounts.length) throw unavailable(`The storage account ${away} is away.`, undefined);
    }
  }

  async function storeIn(account: Storage, first: Line, bytes: Buffer): Promise<true> {
    for (let attempt = 1; ; attempt += 1) {
      const signal = AbortSignal.timeout(ATTEMPT_WITHIN_MS);
      try {
        const opened = open.get(first.hour);
        const blob = opened?.account === account ? opened : await openBlob(account, first, signal);
        // The blob stays open only if the append succeeds.
        open.delete(first.hour);
        await appendOnce(blob, bytes, signal);
        blob.length += bytes.length;
        blob.blocks += 1;
        if (blob.blocks < maxBlocks) open.set(first.hour, blob);
        return true;
      } catch (error) {
        if (attempt === ATTEMPTS || (accounts.length > 1 && isOutcomeUnknown(error))) throw error;
      }
    }
  }

  /** If a reply is lost, the SDK's retry conflicts with the block that the first attempt stored. */
  async function appendOnce(blob: OpenBlob, bytes: Buffer, signal: AbortSignal): Promise<void> {
    try {
      await appendBlock(blob.account, blob, { bytes, position: blob.length, signal });
    } catch (error) {
      const isConflict = error instanceof StorageConflict && error.reason === 'changed';
      if (!isConflict || (await blobLength(blob.account, blob, signal)) !== blob.length + bytes.length) throw error;
    }
  }

  /** Creates a blob for the hour, under the first free number. */
  async function openBlob(account: Storage, { hour, at: first }: Line, signal: AbortSignal): Promise<OpenBlob> {
    const prefix = `${toPrefix(hour)}/`;
    const taken = await listBlobs(account, { container: AUDIT_CONTAINER, prefix, signal });
    const end = account === accountsOf(engine.storage)[0] ? '' : `-${account.name}`;
    for (let number = numberOf(taken.at(-1)) + 1; ; number += 1) {
      const address = { container: AUDIT_CONTAINER, name: `${prefix}${String(number).padStart(6, '0')}${end}.log` };
      try {
        await createAppendBlob(account, address, { metadata: { first }, signal });
      } catch (error) {
        if (error instanceof StorageConflict && error.reason === 'exists') continue;
        throw error;
      }
      closeOlder();
      return { ...address, account, length: 0, blocks: 0 };
    }
  }

  /** Keeps the previous hour's blob open for requests that began in that hour. Records of older hours get a new blob. */
  function closeOlder(): void {
    for (const hour of open.keys()) if (open.size > 1) open.delete(hour);
  }

  return {
    async append(noted) {
      const isExplained = recordIfExplaining(() => ({ write: 'blob', container: AUDIT_CONTAINER, does: 'append' }));
      // An explanation makes its reads, and its steps name rows.
      const changes = isExplained ? noted.filter(({ operation }) => operation === 'read') : noted;
      if (changes.length === 0) return;
      waiting.push(...changes.map(toLine));
      received += changes.length;
      await waitUntilStored(received);
    },
    async catchUp() {
      if (isBehind) await waitUntilStored(received);
    },
  };
}

/** The accounts in the order in which records go there: that of the log is the first. */
function accountsOfLog(storage: Storage): readonly Storage[] {
  const all = accountsOf(storage);
  const own = accountOfContainer(storage, AUDIT_CONTAINER) ?? storage;
  return [own, ...all.filter((account) => account !== own)];
}

/** The hour of an ISO instant, as in the names of blobs: `2026/11/20/0900`. */
function hourOf(at: string): string {
  return `${at.slice(0, 13).replace(/[-T]/g, '/')}00`;
}

const DAY = '2026/11/20'.length;

/** The beginning of the names of a day's, or an hour's, blobs: `ad2/2026/11/20/0900`. */
function toPrefix(time: string): string {
  return `${slotOf(time.slice(0, DAY))}/${time}`;
}

function toLine(change: ChangeRecord): Line {
  return { hour: hourOf(change.at), at: change.at, bytes: Buffer.from(`${jsonText(change)}\n`) };
}

/** The first records that fit into one block and belong to the same hour. */
function firstBlock(waiting: readonly Line[]): Line[] {
  const hour = waiting[0]?.hour;
  let size = 0;
  const end = waiting.findIndex((line) => {
    size += line.bytes.length;
    return line.hour !== hour || size > MAX_BLOCK_BYTES;
  });
  return waiting.slice(0, end === -1 ? undefined : end);
}

function numberOf(blob: string | undefined): number {
  return Number(/(\d+)(?:-\w+)?\.log$/.exec(blob ?? '')?.[1] ?? 0);
}

/** Marks a rejection as handled, because possibly nobody awaits it. */
function newProgress() {
  const progress = Promise.withResolvers<void>();
  progress.promise.catch(() => undefined);
  return progress;
}

interface ChangesQuery {
  /** Milliseconds; `from` inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  /** The last record of the previous page. */
  readonly after?: Position | undefined;
}

/**
 * Returns changes ordered by hour, then by blob, then in the order of their appends: lists each day by its prefix and reads the blobs of the
 * requested hours. Each hour is read from its beginning, because duplicate records are found by their ids.
 */
export const readChanges = inPattern(
  'log in blobs',
  async (
    { storage }: Engine,
    { from, to, limit, after }: ChangesQuery,
  ): Promise<{ items: ChangeRecord[]; next: Position | undefined }> => {
    const read = after && positionOf(after);
    const firstHour = read ? hourIn(read.blob) : hourOf(isoInstant(from));
    const lastHour = hourOf(isoInstant(to - 1));
    const items: ChangeRecord[] = [];
    let last: Position | undefined;
    let seen = new Set<string>();
    let hour = '';
    for (const day of daysBetween(firstHour, lastHour)) {
      const prefixes = [toPrefix(day), day];
      const listed = await Promise.all(
        accountsOfLog(storage).flatMap((account) =>
          prefixes.map(async (prefix) => {
            const names = listBlobs(account, { container: AUDIT_CONTAINER, prefix: `${prefix}/` });
            return (await ofAccount(account, names)).map((blob) => ({ account, blob }));
          }),
        ),
      );
      const blobs = listed.flat().toSorted((a, b) => (isBefore(a.blob, b.blob) ? -1 : 1));
      for (const { account, blob } of blobs) {
        if (hourIn(blob) < firstHour || hourIn(blob) > lastHour) continue;
        if (hourIn(blob) !== hour) seen = new Set();
        hour = hourIn(blob);
        let line = 0;
        for await (const text of readLines(account, { container: AUDIT_CONTAINER, name: blob })) {
          line += 1;
          const change = ChangeRecord.parse(JSON.parse(text));
          if (seen.has(change.id)) continue;
          seen.add(change.id);
          const at = Date.parse(change.at);
          const isRead = read && (isBefore(blob, read.blob) || (blob === read.blob && line <= read.line));
          if (isRead || at < from || at >= to) continue;
          if (items.length === limit) return { items, next: last };
          items.push(change);
          last = { row: `${blob}:${line}` };
        }
      }
    }
    return { items, next: undefined };
  },
);

function positionOf({ row }: Position): { blob: string; line: number } {
  const [blob = '', line] = row.split(':');
  return { blob, line: Number(line) };
}

/** The hour in a blob name, such as `2026/11/20/0900`. */
function hourIn(blob: string): string {
  const time = timeIn(blob);
  return time.slice(0, time.lastIndexOf('/'));
}

/** The name without the slot. */
function timeIn(blob: string): string {
  return blob.replace(/^[\da-f]{3}\//, '');
}

/** Blobs are read in the order of their hours and numbers; a name of an earlier release, which has no slot, comes first. */
function isBefore(blob: string, other: string): boolean {
  const [time, otherTime] = [timeIn(blob), timeIn(other)];
  return time === otherTime ? blob.length < other.length : time < otherTime;
}

/** Every day from one hour to another, inclusive, as `2026/11/20`. */
function daysBetween(firstHour: string, lastHour: string): string[] {
  const [first = '', last = ''] = [firstHour, lastHour].map((hour) => hour.slice(0, 10).replaceAll('/', '-'));
  return periodsBetween('day', first, last).map((day) => day.replaceAll('-', '/'));
}
