import { keptFor } from '../base/once.ts';
import type { Storage } from '../storage/storage.ts';

/**
 * Writers of one process that change the same rows run one after the other. They do not conflict, and each plans from the
 * state that the previous one has written. ETags keep the order between processes.
 *
 * A promise chain instead of a mutex library: each writer calls `then` itself, so its work runs in its own async context
 * (trace, audit log, explanation). A queue that starts the next work when the previous one ends would lose that context.
 */
const lastsOf = keptFor((_: Storage) => new Map<string, Promise<unknown>>());

/** Runs `work` after all work that was started earlier under the same key, whether that succeeded or failed. */
export async function runExclusive<Result>(
  storage: Storage,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const lasts = lastsOf(storage);
  const mine = (lasts.get(key) ?? Promise.resolve()).then(work, work);
  const settled = mine.catch(() => undefined);
  lasts.set(key, settled);
  try {
    return await mine;
  } finally {
    if (lasts.get(key) === settled) lasts.delete(key);
  }
}
