import { AsyncLocalStorage } from 'node:async_hooks';
import { isOutcomeUnknown, unavailable } from '../base/errors.ts';
import { appendBlock, createAppendBlob, listBlobs } from '../storage/append-blobs.ts';
import { blobLength } from '../storage/blobs.ts';
import { ofAccount, StorageConflict, unlessAway } from '../storage/errors.ts';
import type { Storage } from '../storage/storage.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Log data in blobs pattern: lines in append blobs, by hour: `{folder of the hour}/nnnnnn.log`.
 *
 * Group commit: if no append is running, a line is appended immediately; lines that arrive during an append share the next block. Each
 * process writes its own blobs and appends at the length it expects, so after a lost reply the blob's length shows whether the block was
 * stored. If any other outcome is unknown, the same lines go into a new blob, and readers skip a line whose id they have already seen.
 *
 * A log may have several accounts. While the first one is away, processes append in the next one; readers read the blobs of all. Names
 * outside the first account end with the account, so that each is unique.
 *
 * A blob is created and appended to, and never changed otherwise: the container may be immutable, which allows nothing else. So the
 * metadata has the time of the first line only. The last one was stored when the blob was last modified.
 */

export interface AppendLog<Line> {
  /** Resolves once all lines are stored. Throws `storage-unavailable`; the lines then go into the next append. */
  append(lines: readonly Line[]): Promise<void>;
  /**
   * Appends the lines of earlier, failed appends. Await it before making a change: then no change is made while lines cannot be stored, and
   * a repeated request does not succeed before its line is stored. Throws `storage-unavailable`.
   */
  catchUp(): Promise<void>;
}

export interface LogLine {
  /** As in the names of blobs: `2026/11/20/0900`. */
  readonly hour: string;
  /** An ISO instant. */
  readonly at: string;
  readonly bytes: Buffer;
}

interface LogOptions<Line> {
  /** In the order in which lines go there. Each has a name if there are several. */
  readonly accounts: readonly [Storage, ...Storage[]];
  readonly container: string;
  /** The beginning of the names of an hour's blobs, without a slash at the end. */
  readonly toFolder: (hour: string) => string;
  /** How names end in an account: `.log`. Unlike in each of the others. */
  readonly toEnd: (account: Storage) => string;
  readonly toLine: (line: Line) => LogLine;
  /** The message of `storage-unavailable`. */
  readonly failure: string;
  readonly maxBlocks?: number | undefined;
}

/** https://learn.microsoft.com/rest/api/storageservices/append-block */
const MAX_BLOCKS = 50_000;
/** The smallest limit of all service versions. A longer line is a block of its own. */
const MAX_BLOCK_BYTES = 4 * 1_024 * 1_024;
/** One attempt in the open blob and one in a new blob. An account that is away gets one, before the next account. */
const ATTEMPTS = 2;
const ATTEMPT_WITHIN_MS = 10_000;
/** So long a process appends in another account before it tries the log's own again. */
const ELSEWHERE_MS = 60_000;

interface OpenBlob {
  readonly account: Storage;
  readonly container: string;
  readonly name: string;
  length: number;
  blocks: number;
}

/** An append belongs to the process, so its storage calls are not counted in the request that triggers it. */
const inProcess = AsyncLocalStorage.snapshot();

/** Creates the appender of a process. Create one for each log and process. */
export function createAppendLog<Line>(options: LogOptions<Line>): AppendLog<Line> {
  const { accounts, container, toFolder, toEnd, toLine, failure, maxBlocks = MAX_BLOCKS } = options;
  let [inUse, elsewhereUntil] = [0, 0];
  const open = new Map<string, OpenBlob>();
  /** Lines to store, in order of arrival. The running append has the first ones. */
  const waiting: LogLine[] = [];
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
      // Every waiting caller gets the error. The lines stay first in the queue.
      isBehind = true;
      const { reject } = progress;
      progress = newProgress();
      reject(unavailable(failure, error));
    } finally {
      isRunning = false;
    }
  }

  async function store(block: readonly LogLine[]): Promise<void> {
    const [first] = block;
    if (!first) return;
    const bytes = Buffer.concat(block.map((line) => line.bytes));
    const start = performance.now() < elsewhereUntil ? inUse : 0;
    for (let tried = 1; ; tried += 1) {
      const index = (start + tried - 1) % accounts.length;
      const account = accounts[index] ?? accounts[0];
      const { result: isStored, away } = await unlessAway(ofAccount(account, storeIn(account, first, bytes)));
      if (isStored) {
        if (index !== start) elsewhereUntil = performance.now() + ELSEWHERE_MS;
        inUse = index;
        return;
      }
      if (tried === accounts.length) throw unavailable(`The storage account ${away} is away.`, undefined);
    }
  }

  async function storeIn(account: Storage, first: LogLine, bytes: Buffer): Promise<true> {
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
  async function openBlob(account: Storage, { hour, at: first }: LogLine, signal: AbortSignal): Promise<OpenBlob> {
    const prefix = `${toFolder(hour)}/`;
    const taken = await listBlobs(account, { container, prefix, signal });
    for (let number = numberOf(taken.at(-1)) + 1; ; number += 1) {
      const address = { container, name: `${prefix}${String(number).padStart(6, '0')}${toEnd(account)}` };
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

  /** Keeps the previous hour's blob open for requests that began in that hour. Lines of older hours get a new blob. */
  function closeOlder(): void {
    for (const hour of open.keys()) if (open.size > 1) open.delete(hour);
  }

  return {
    async append(lines) {
      if (lines.length === 0) return;
      waiting.push(...lines.map(toLine));
      received += lines.length;
      await waitUntilStored(received);
    },
    async catchUp() {
      if (isBehind) await waitUntilStored(received);
    },
  };
}

/** The hour of an ISO instant, as in the names of blobs: `2026/11/20/0900`. */
export function hourOf(at: string): string {
  return `${at.slice(0, 13).replace(/[-T]/g, '/')}00`;
}

/** The first lines that fit into one block and belong to the same hour. */
function firstBlock(waiting: readonly LogLine[]): LogLine[] {
  const hour = waiting[0]?.hour;
  let size = 0;
  const end = waiting.findIndex((line, index) => {
    size += line.bytes.length;
    return line.hour !== hour || (index > 0 && size > MAX_BLOCK_BYTES);
  });
  return waiting.slice(0, end === -1 ? undefined : end);
}

function numberOf(blob: string | undefined): number {
  return Number(/(\d+)(?:-\w+)?\.\w+$/.exec(blob ?? '')?.[1] ?? 0);
}

/** Marks a rejection as handled, because possibly nobody awaits it. */
function newProgress() {
  const progress = Promise.withResolvers<void>();
  progress.promise.catch(() => undefined);
  return progress;
}
