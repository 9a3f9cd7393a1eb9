import { setTimeout as sleep } from 'node:timers/promises';
import { MINUTE_MS } from '../../lib/base/time.ts';
import { invoke } from './invoke.ts';
import type { HostedFunction, TimerTrigger } from './load-app.ts';
import { compileSchedule } from './schedule.ts';
import type { TimerState, TimerStatus } from './timer-state.ts';

/** The limit of setTimeout: 31 bits. */
const LONGEST_SLEEP_MS = 2 ** 31 - 1;
/** The real host keeps no status for more frequent schedules. */
const MONITORED_FROM_MS = MINUTE_MS;

export interface TimerListener {
  readonly name: string;
  /** Runs the function now, or after the run in progress. */
  run(): void;
  /** Starts no more runs, and resolves when the run in progress has ended. */
  stop(): Promise<void>;
}

/**
 * Runs a function on its schedule, in UTC, one run at a time. The next time is counted from the start of a run. If a run
 * lasts longer than that, the next run starts immediately. A run that was missed while the host was stopped starts with the
 * host, as past due; the real host does so only for schedules of at least a minute. A disabled function has no schedule.
 */
export function startTimerListener(target: HostedFunction<TimerTrigger>, state: TimerState): TimerListener {
  const nextAfter = compileSchedule(target.trigger.schedule);
  const { name } = target;
  const first = nextAfter(new Date());
  const isMonitored = nextAfter(first).getTime() - first.getTime() >= MONITORED_FROM_MS;
  const stopping = new AbortController();
  let status: TimerStatus = (isMonitored ? state.read(name) : undefined) ?? { since: new Date() };
  let current: Promise<void> = Promise.resolve();

  function keep(changed: TimerStatus) {
    status = changed;
    if (isMonitored) state.write(name, changed);
  }

  async function runOnce(due: Date, isPastDue: boolean) {
    if (stopping.signal.aborted) return;
    // A Node timer may fire slightly early.
    const started = new Date(Math.max(Date.now(), due.getTime()));
    const { last, since } = status;
    const ScheduleStatus = last ? { Last: last, Next: nextAfter(last), LastUpdated: since } : null;
    const info = { Schedule: { AdjustForDST: true }, ScheduleStatus, IsPastDue: isPastDue };
    // The invocation has logged its failure. The schedule continues.
    await invoke(target, { data: { json: JSON.stringify(info) } }).catch(() => undefined);
    keep({ last: started, since: new Date() });
  }

  function run(due = new Date(0), isPastDue = false) {
    current = current.then(() => runOnce(due, isPastDue));
    return current;
  }

  async function keepSchedule() {
    const nextDue = () => nextAfter(status.last ?? status.since);
    if (nextDue().getTime() < Date.now()) await run(new Date(), true);
    else keep(status);
    while (!stopping.signal.aborted) {
      const due = nextDue();
      for (let left = due.getTime() - Date.now(); left > 0; left = due.getTime() - Date.now())
        await sleep(Math.min(left, LONGEST_SLEEP_MS), undefined, { signal: stopping.signal });
      await run(due);
    }
  }
  // Only the stop interrupts the sleep.
  if (!target.isDisabled) keepSchedule().catch(() => undefined);

  return {
    name,
    run: () => void run(),
    stop() {
      stopping.abort();
      return current;
    },
  };
}
