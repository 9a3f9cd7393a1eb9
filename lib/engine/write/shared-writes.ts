import { keptFor } from '../../base/once.ts';
import { backOff } from '../../base/time.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import { isExplaining } from '../../storage/explain.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * Writes of rows that several entities share, such as a list in another partition. Concurrent changes of one row in a process
 * are written together. Each request has read its entity before the row is read, so one write serves all of them. If the row
 * changes concurrently, every request starts over from its entity.
 */

const BACK_OFF_MS = 25;
const LONGEST_BACK_OFF_MS = 250;

/** The requests whose hold is not lost, and the signal that aborts their write. */
interface Held<Request> {
  readonly requests: readonly Request[];
  readonly signal: AbortSignal;
}

export interface SharedWriter<Request> {
  /** Writes a batch. `keepHolds` must be called right before the write. Returns false if a row changed concurrently. */
  write(storage: Storage, requests: readonly Request[], keepHolds: () => Promise<Held<Request>>): Promise<boolean>;
  /** The most requests of a batch; any number by default. */
  most?(storage: Storage): number;
  /** A batch has at most one request of each; any number by default. */
  readonly distinctBy?: (request: Request) => string;
}

interface Waiting<Request> {
  readonly request: Request;
  readonly outcome: PromiseWithResolvers<boolean>;
}

/** Returns a function that submits a request for the row `key`. Its result is false if the row changed concurrently. */
export function createSharedWrites<Request extends { readonly hold: Hold }>(
  writer: SharedWriter<Request>,
): (storage: Storage, key: string, request: Request) => Promise<boolean> {
  const waitingOf = keptFor((_: Storage) => new Map<string, Waiting<Request>[]>());

  return (storage, key, request) => {
    const one = { request, outcome: Promise.withResolvers<boolean>() };
    // An explanation must not share a write with real requests.
    if (isExplaining()) return writeBatch(storage, [one]);
    const rows = waitingOf(storage);
    const others = rows.get(key);
    if (others) others.push(one);
    else {
      rows.set(key, [one]);
      void writeAll(storage, rows, key);
    }
    return one.outcome.promise;
  };

  /** Writes one batch at a time: requests that arrived during the previous write. */
  async function writeAll(storage: Storage, rows: Map<string, Waiting<Request>[]>, key: string): Promise<void> {
    // The first batch has all requests of a caller that submits several.
    await undefined;
    for (let conflicts = 0; ; ) {
      const batch = takeBatch(storage, rows.get(key) ?? []);
      if (batch.length === 0) {
        rows.delete(key);
        return;
      }
      try {
        const isWritten = await writeBatch(storage, batch);
        for (const { outcome } of batch) outcome.resolve(isWritten);
        conflicts = isWritten ? 0 : conflicts + 1;
      } catch (error) {
        for (const { outcome } of batch) outcome.reject(error);
      }
      if (conflicts > 0) await backOff(conflicts, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
    }
  }

  function takeBatch(storage: Storage, all: Waiting<Request>[]): Waiting<Request>[] {
    const { distinctBy } = writer;
    const most = writer.most?.(storage) ?? Number.POSITIVE_INFINITY;
    const batch = new Map<unknown, Waiting<Request>>();
    for (const one of all) {
      const id = distinctBy?.(one.request) ?? one;
      if (batch.size < most && !batch.has(id)) batch.set(id, one);
    }
    const taken = [...batch.values()];
    all.splice(0, all.length, ...all.filter((one) => !taken.includes(one)));
    return taken;
  }

  function writeBatch(storage: Storage, batch: readonly Waiting<Request>[]): Promise<boolean> {
    const requests = batch.map(({ request }) => request);
    return writer.write(storage, requests, async () => {
      const held: Request[] = [];
      const signals: AbortSignal[] = [];
      for (const { request, outcome } of batch)
        try {
          signals.push(await request.hold.keep());
          held.push(request);
        } catch (error) {
          outcome.reject(error);
        }
      return { requests: held, signal: AbortSignal.any(signals) };
    });
  }
}
