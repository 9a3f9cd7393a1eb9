import { AsyncLocalStorage } from 'node:async_hooks';
import type { Engine } from '../engine/engine.ts';
import type { ChangeRecord } from '../engine/note-change.ts';
import { unavailable } from '../errors.ts';
import { appendBlock, createAppendBlob, listBlobs, setBlobMetadata } from '../storage/append-blobs.ts';
import { blobLength } from '../storage/blobs.ts';
import { StorageConflict } from '../storage/errors.ts';
import { isExplained } from '../storage/explain.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Log data in blobs pattern: changes are appended as JSON lines to `yyyy/MM/dd/HH00/nnnnnn.log`, by the hour in which they
 * were made, so that a reader lists an hour by its prefix and reads no other.
 *
 * Group commit: records are appended at once where no append is under way, and those that come meanwhile go together in
 * the next block. A blob has one writer: each process makes its own, and appends under the length that it knows. So, where
 * a reply was lost, the length says whether the block is there; of whatever else the outcome is not known, the same
 * records go on into a fresh blob, and readers drop a record whose id they have seen in that hour.
 */

export const AUDIT_CONTAINER = 'audit';

export interface AuditLog {
  /** Resolves once all are stored for good. Throws `storage-unavailable`; then they go with the next append. */
  append(changes: readonly ChangeRecord[]): Promise<void>;
  /**
   * Appends what an earlier append could not. To be awaited before a change is made: so none is made while none can be
   * recorded, and who repeats a request is not told that it is done before it is recorded. Throws `storage-unavailable`.
   */
  catchUp(): Promise<void>;
}

/** https://learn.microsoft.com/rest/api/storageservices/append-block */
const MAX_BLOCKS = 50_000;
/** The least that any version of the service takes. */
const MAX_BLOCK_BYTES = 4 * 1_024 * 1_024;
/** In the blob that is open, and in a fresh one. */
const ATTEMPTS = 2;
const ATTEMPT_WITHIN_MS = 10_000;
const DESCRIBE_EVERY_MS = 5_000;

interface Line {
  readonly hour: string;
  readonly at: string;
  readonly bytes: Buffer;
}

interface OpenBlob {
  readonly container: string;
  readonly name: string;
  readonly first: string;
  last: string;
  length: number;
  blocks: number;
  describedAt: number;
}

/** Appending is the work of the process and not of the request that happens to start it: it costs no request anything. */
const inProcess = AsyncLocalStorage.snapshot();

/** The appender of a process; there is to be no more than one. */
export function createAuditLog(engine: Engine, { maxBlocks = MAX_BLOCKS } = {}): AuditLog {
  const { storage, now } = engine;
  const open = new Map<string, OpenBlob>();
  /** Not stored yet, in the order in which they came; those under way are the first. */
  const waiting: Line[] = [];
  let received = 0;
  let stored = 0;
  let isRunning = false;
  let isBehind = false;
  let progress = newProgress();

  async function untilStored(count: number): Promise<void> {
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
      // Nobody who waits is told that it is stored; all of it stays first in the line.
      isBehind = true;
      const { reject } = progress;
      progress = newProgress();
      reject(unavailable('Changes cannot be recorded now, and none is acknowledged until they are.', error));
    } finally {
      isRunning = false;
    }
  }

  async function store(block: readonly Line[]): Promise<void> {
    const [first] = block;
    const last = block.at(-1);
    if (!first || !last) return;
    const bytes = Buffer.concat(block.map((line) => line.bytes));
    for (let attempt = 1; ; attempt += 1) {
      const signal = AbortSignal.timeout(ATTEMPT_WITHIN_MS);
      try {
        const blob = open.get(first.hour) ?? (await openBlob(first, last, signal));
        // Whatever comes of this, it goes on there only when it went well.
        open.delete(first.hour);
        await appendOnce(blob, bytes, signal);
        blob.length += bytes.length;
        blob.blocks += 1;
        blob.last = last.at;
        if (blob.blocks < maxBlocks) open.set(first.hour, blob);
        if (now() - blob.describedAt >= DESCRIBE_EVERY_MS || blob.blocks >= maxBlocks) describe(blob);
        return;
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
      }
    }
  }

  /** The SDK's second attempt at a block whose reply was lost is refused by the first one's success. */
  async function appendOnce(blob: OpenBlob, bytes: Buffer, signal: AbortSignal): Promise<void> {
    try {
      await appendBlock(storage, blob, { bytes, position: blob.length, signal });
    } catch (error) {
      const isRefused = error instanceof StorageConflict && error.reason === 'changed';
      if (!isRefused || (await blobLength(storage, blob, signal)) !== blob.length + bytes.length) throw error;
    }
  }

  /** A new blob of the hour, under the first number that is free. */
  async function openBlob({ hour, at: first }: Line, { at: last }: Line, signal: AbortSignal): Promise<OpenBlob> {
    const taken = await listBlobs(storage, { container: AUDIT_CONTAINER, prefix: `${hour}/`, signal });
    for (let number = numberOf(taken.at(-1)) + 1; ; number += 1) {
      const address = { container: AUDIT_CONTAINER, name: `${hour}/${String(number).padStart(6, '0')}.log` };
      try {
        await createAppendBlob(storage, address, { metadata: { first, last }, signal });
      } catch (error) {
        if (error instanceof StorageConflict && error.reason === 'exists') continue;
        throw error;
      }
      close(hour);
      return { ...address, first, last, length: 0, blocks: 0, describedAt: now() };
    }
  }

  /** A request that began before the hour was over may still come; one from before the hour before that gets a fresh blob. */
  function close(fresh: string): void {
    for (const [hour, blob] of open) {
      if (open.size > 1) open.delete(hour);
      if (hour < fresh) describe(blob);
    }
  }

  /** In the background: that metadata lags behind must not hold up, or fail, what is stored already. */
  function describe(blob: OpenBlob): void {
    const { first, last } = blob;
    blob.describedAt = now();
    setBlobMetadata(storage, blob, { first, last }).catch(() => undefined);
  }

  return {
    async append(changes) {
      if (isExplained(() => ({ write: 'blob', container: AUDIT_CONTAINER, does: 'append' }))) return;
      waiting.push(...changes.map(toLine));
      received += changes.length;
      await untilStored(received);
    },
    async catchUp() {
      if (isBehind) await untilStored(received);
    },
  };
}

/** The prefix of the blobs of an hour, from an ISO instant: `2026/11/20/0900`. */
export function hourOf(at: string): string {
  return `${at.slice(0, 13).replace(/[-T]/g, '/')}00`;
}

function toLine(change: ChangeRecord): Line {
  return { hour: hourOf(change.at), at: change.at, bytes: Buffer.from(`${JSON.stringify(change)}\n`) };
}

/** As many as go together into one block: of the same hour, and no more than it holds. */
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
  return Number(/(\d+)\.log$/.exec(blob ?? '')?.[1] ?? 0);
}

/** Rejected for those who wait, and there may be none. */
function newProgress() {
  const progress = Promise.withResolvers<void>();
  progress.promise.catch(() => undefined);
  return progress;
}
