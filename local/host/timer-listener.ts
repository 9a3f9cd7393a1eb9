import { setTimeout as sleep } from 'node:timers/promises';
import { Cron } from 'croner';
import { invoke } from './invoke.ts';
import type { HostedFunction, TimerTrigger } from './load-app.ts';
import { parseTimeSpan } from './time-span.ts';

/** setTimeout counts in 31 bits. */
const LONGEST_SLEEP_MS = 2 ** 31 - 1;

export interface TimerListener {
  readonly name: string;
  /** Runs the function by hand: after the run under way, if there is one. */
  run(): void;
  /** Plans no more runs and resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/**
 * Runs a function on its schedule, in UTC, never twice at once: the next time is counted from the end of a run, so
 * that times which pass meanwhile are skipped. The status is kept in memory, hence a run is never past due.
 */
export function startTimerListener(target: HostedFunction<TimerTrigger>): TimerListener {
  const nextAfter = compileSchedule(target);
  const stopping = new AbortController();
  let status: { Last: Date; Next: Date; LastUpdated: Date } | null = null;
  let current: Promise<void> = Promise.resolve();

  async function runOnce() {
    if (stopping.signal.aborted) return;
    const started = new Date();
    const info = { Schedule: { AdjustForDST: true }, ScheduleStatus: status, IsPastDue: false };
    // The invocation has logged its failure; the schedule goes on.
    await invoke(target, { data: { json: JSON.stringify(info) } }).catch(() => undefined);
    status = { Last: started, Next: nextAfter(new Date()), LastUpdated: new Date() };
  }

  function run() {
    current = current.then(runOnce);
    return current;
  }

  async function keepSchedule() {
    while (!stopping.signal.aborted) {
      const due = nextAfter(new Date()).getTime();
      for (let left = due - Date.now(); left > 0; left = due - Date.now())
        await sleep(Math.min(left, LONGEST_SLEEP_MS), undefined, { signal: stopping.signal });
      await run();
    }
  }
  // The sleep is cut short by the stop, and by nothing else.
  keepSchedule().catch(() => undefined);

  return {
    name: target.name,
    run: () => void run(),
    stop() {
      stopping.abort();
      return current;
    },
  };
}

/** NCrontab of 5 or 6 fields, whose days of month and of week must both hold, or a TimeSpan between runs. */
function compileSchedule({ name, trigger: { schedule } }: HostedFunction<TimerTrigger>): (from: Date) => Date {
  const interval = parseTimeSpan(schedule);
  if (interval) return (from) => new Date(from.getTime() + interval);
  try {
    const cron = new Cron(schedule, { paused: true, mode: '5-or-6-parts', domAndDow: true, timezone: 'UTC' });
    const next = (from: Date) => {
      const date = cron.nextRun(from);
      if (!date) throw new Error('it names no time to come');
      return date;
    };
    next(new Date());
    return next;
  } catch (error) {
    throw new Error(
      `The function ${name} has the schedule ${schedule}: ${error instanceof Error ? error.message : error}.`,
    );
  }
}
