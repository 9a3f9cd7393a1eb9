/**
 * How many pieces of work may be in progress at a time. Background work adapts to the other side: it begins with few, gets one more each second
 * (additive increase), and half as many when the other side says that it is busy (multiplicative decrease). With a limit, both kinds count, and
 * callers go first.
 */

export type Priority = 'caller' | 'background';

/** The signals of the storage SDKs have no reason. */
type Aborting = Pick<AbortSignal, 'aborted'> & {
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
};

/** What the end of a piece of work says: nothing, or that the other side is busy, and for how long if it knows. */
export type Report = { readonly busyForMs: number | undefined } | undefined;

export interface Pace {
  /**
   * Waits until the work may begin. The work that it permits calls the function that is returned exactly once, when it ends. Throws an
   * `AbortError` if the signal comes first.
   */
  enter(priority: Priority, signal?: Aborting): Promise<(report?: Report) => void>;
  /** How much background work may be in progress. */
  readonly allowed: number;
  /** False if callers need not enter. */
  readonly isLimited: boolean;
  /** What the end of work says that began at `beganAt` (of `performance.now()`) and did not enter. */
  note(beganAt: number, report: Report): void;
}

/** Ten milliseconds a request make 800 a second, less than a partition serves. */
const FIRST = 8;
const ONE_MORE_EVERY_MS = 1_000;
/** After this time without background work, the next work begins with few again: it may be on other partitions. */
const FORGET_AFTER_MS = 60_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

interface PaceOptions {
  /** The most pieces of work, of callers and in the background. Default: no limit for callers. */
  readonly limit?: number | undefined;
  /** How much background work may be in progress at first. */
  readonly first?: number;
}

export function createPace({ limit = Number.POSITIVE_INFINITY, first = FIRST }: PaceOptions = {}): Pace {
  const now = () => performance.now();
  const waiting: Readonly<Record<Priority, Set<() => void>>> = { caller: new Set(), background: new Set() };
  const running: Record<Priority, number> = { caller: 0, background: 0 };
  let allowed = first;
  let isFull = false;
  let changedAt = now();
  let endedAt = now();
  let pausedUntil = 0;
  let pauseMs = FIRST_PAUSE_MS;
  let timer: NodeJS.Timeout | undefined;

  /** Whose work may begin now. Callers never keep all of the background work out: the index entries of their writes are part of it. */
  function next(): Priority | undefined {
    if (running.caller + running.background >= limit) return undefined;
    const mayBegin = waiting.background.size > 0 && running.background < Math.floor(allowed) && now() >= pausedUntil;
    if (mayBegin && (waiting.caller.size === 0 || running.background === 0)) return 'background';
    return waiting.caller.size > 0 ? 'caller' : undefined;
  }

  function beginAll(): void {
    for (let priority = next(); priority; priority = next()) {
      const [begin] = waiting[priority];
      if (!begin) return;
      waiting[priority].delete(begin);
      running[priority] += 1;
      begin();
    }
    if (waiting.background.size === 0) return;
    isFull ||= running.background >= Math.floor(allowed);
    if (timer === undefined && now() < pausedUntil)
      timer = setTimeout(() => {
        timer = undefined;
        beginAll();
      }, pausedUntil - now());
  }

  /** Decreases once for all work that began before, and pauses: what is sent meanwhile would be refused, too. */
  function slowDown(beganAt: number, busyForMs = 0): void {
    pausedUntil = Math.max(pausedUntil, now() + busyForMs);
    if (beganAt < changedAt) return;
    if (allowed === 1) pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    pausedUntil = Math.max(pausedUntil, now() + pauseMs);
    allowed = Math.max(1, allowed / 2);
    changedAt = now();
    isFull = false;
  }

  function speedUp(): void {
    pauseMs = FIRST_PAUSE_MS;
    // Work that did not need more says nothing about what the other side can do.
    if (!isFull || now() - changedAt < ONE_MORE_EVERY_MS) return;
    allowed += 1;
    changedAt = now();
    isFull = false;
  }

  function permit(priority: Priority): (report?: Report) => void {
    const beganAt = now();
    return (report) => {
      running[priority] -= 1;
      if (report) slowDown(beganAt, report.busyForMs);
      else if (priority === 'background') speedUp();
      if (priority === 'background') endedAt = now();
      beginAll();
    };
  }

  return {
    get allowed() {
      return allowed;
    },
    isLimited: limit < Number.POSITIVE_INFINITY,
    note(beganAt, report) {
      if (report) slowDown(beganAt, report.busyForMs);
    },
    async enter(priority, signal) {
      if (signal?.aborted) throw aborted();
      if (priority === 'caller' && waiting.caller.size === 0 && running.caller + running.background < limit) {
        running.caller += 1;
        return permit(priority);
      }
      const isIdle = running.background === 0 && waiting.background.size === 0;
      if (priority === 'background' && isIdle && now() - endedAt >= FORGET_AFTER_MS) allowed = Math.min(allowed, first);
      await new Promise<void>((resolve, reject) => {
        const begin = () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        };
        const abort = () => {
          // Not if the work has begun.
          if (waiting[priority].delete(begin)) reject(aborted());
        };
        waiting[priority].add(begin);
        signal?.addEventListener('abort', abort);
        beginAll();
      });
      return permit(priority);
    },
  };
}

function aborted(): DOMException {
  return new DOMException('The work was aborted before it began.', 'AbortError');
}
