import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

/** The last run of a timer, and the time since which the timer is known. The schedule determines the rest. */
const TimerStatus = z.object({ last: z.coerce.date().optional(), since: z.coerce.date() });
export type TimerStatus = z.infer<typeof TimerStatus>;
const Statuses = z.record(z.string(), TimerStatus);

export interface TimerState {
  read(name: string): TimerStatus | undefined;
  write(name: string, status: TimerStatus): void;
}

/** Keeps the status of timers in a file, as the real host does in a blob; without a file, in memory. */
export function openTimerState(file: string | undefined): TimerState {
  const statuses = new Map(Object.entries(file === undefined ? {} : readStatuses(file)));
  return {
    read: (name) => statuses.get(name),
    write(name, status) {
      statuses.set(name, status);
      if (file !== undefined) writeFileSync(file, JSON.stringify(Object.fromEntries(statuses)));
    },
  };
}

/** Ignores a file that is missing or was only partly written. */
function readStatuses(file: string): Record<string, TimerStatus> {
  try {
    return Statuses.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}
