import { DAY_MS } from '../base/time.ts';

/**
 * What this process has used of storage since the day began, in UTC, or since the process started. Operators see it without
 * Application Insights; only Application Insights knows the sum of all processes and earlier days.
 */

interface Counted {
  readonly count: number;
}

interface Usage {
  /** When counting began: the start of the day or of the process, in milliseconds. */
  readonly since: number;
  /** `operation` is the service and the method: `table GET`. */
  readonly transactions: readonly (Counted & { readonly pattern: string; readonly operation: string })[];
  readonly grants: readonly (Counted & { readonly entity: string })[];
}

/** Separates the two parts of a key; no pattern and no method has it. */
const SEPARATOR = '\n';

let since = Date.now();
let day = dayOf(since);
const transactions = new Map<string, number>();
const grants = new Map<string, number>();

/** Days since 1970, in UTC. */
function dayOf(instant: number): number {
  return Math.floor(instant / DAY_MS);
}

function startDay(now = Date.now()): void {
  const today = dayOf(now);
  if (day === today) return;
  day = today;
  since = today * DAY_MS;
  transactions.clear();
  grants.clear();
}

export function noteTransaction({ pattern, operation }: { readonly pattern: string; readonly operation: string }) {
  startDay();
  increment(transactions, pattern + SEPARATOR + operation);
}

export function noteGrant({ entity }: { readonly entity: string }): void {
  startDay();
  increment(grants, entity);
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** The counts of the current day, the largest first. */
export function readUsage(): Usage {
  startDay();
  const sort = (counts: ReadonlyMap<string, number>) => [...counts].toSorted(([, one], [, other]) => other - one);
  return {
    since,
    transactions: sort(transactions).map(([key, count]) => {
      const [pattern = '', operation = ''] = key.split(SEPARATOR);
      return { pattern, operation, count };
    }),
    grants: sort(grants).map(([entity, count]) => ({ entity, count })),
  };
}
