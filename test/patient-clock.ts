import { afterAll, beforeAll } from 'vitest';

const TICK_MS = 5;
/** What one turn of the event loop may count: more than it takes on an idle machine. */
const MOST_OF_A_TURN_MS = 4 * TICK_MS;

/**
 * A clock, in milliseconds, for which a turn of the event loop takes at most twenty, however long the machine is busy elsewhere. Call `stop` at the end.
 */
export function createTurnClock() {
  const real = performance.now.bind(performance);
  let last = real();
  let counted = last;
  const timer = setInterval(() => {
    const now = real();
    counted += Math.min(now - last, MOST_OF_A_TURN_MS);
    last = now;
  }, TICK_MS);
  timer.unref();
  return { now: () => counted, stop: () => clearInterval(timer) };
}

/**
 * Makes it the clock of `performance.now` in the tests of the calling file. So work within a time limit is not late on a slow machine, and only the
 * waits take longer. Time limits that another process also keeps must not depend on it.
 */
export function countTurns(): void {
  let clock: ReturnType<typeof createTurnClock>;
  beforeAll(() => {
    clock = createTurnClock();
    Object.defineProperty(performance, 'now', { value: clock.now, configurable: true, writable: true });
  });
  afterAll(() => {
    clock.stop();
    Reflect.deleteProperty(performance, 'now');
  });
}
