import type { RateLimiterMemory } from 'rate-limiter-flexible';
import { keptFor, loadOnce } from '../base/once.ts';

/** The package loads a limiter for each database it knows, so no cold start waits for it. */
const loadLimiters = loadOnce(() => import('rate-limiter-flexible'));

interface Rate {
  readonly points: number;
  /** Seconds. */
  readonly duration: number;
}

/**
 * Counts what this process does for each owner, such as a storage account, by a key. The function returns the seconds to wait, or undefined if the
 * rate has room for one more.
 */
export function createRateLimit(rate: Rate): (owner: object, key: string) => Promise<number | undefined> {
  const limiters = keptFor((_: object): { current?: RateLimiterMemory } => ({}));
  return async (owner, key) => {
    const { RateLimiterMemory, RateLimiterRes } = await loadLimiters();
    const kept = limiters(owner);
    kept.current ??= new RateLimiterMemory(rate);
    try {
      await kept.current.consume(key);
      return undefined;
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      return Math.max(1, Math.ceil(error.msBeforeNext / 1_000));
    }
  };
}
