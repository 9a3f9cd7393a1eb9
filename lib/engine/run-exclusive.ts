import type { Storage } from '../storage/storage.ts';

/**
 * Those of this process that write the same rows go one after the other: none of them is refused for the sake of another,
 * and each plans from what the one before has written. Between processes it is the ETags that keep order.
 */
const lasts = new WeakMap<Storage, Map<string, Promise<unknown>>>();

/** Runs `work` once all that came before it under the same key are over. */
export async function runExclusive<Result>(
  storage: Storage,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const known = lasts.get(storage) ?? new Map<string, Promise<unknown>>();
  lasts.set(storage, known);
  const mine = (known.get(key) ?? Promise.resolve()).then(work, work);
  const settled = mine.catch(() => undefined);
  known.set(key, settled);
  try {
    return await mine;
  } finally {
    if (known.get(key) === settled) known.delete(key);
  }
}
