import { compileSchedule } from '../../../local/host/schedule.ts';
import type { AppProcess } from './app-process.ts';
import type { Chance } from './chance.ts';
import { runIn, trueTime, wait } from './virtual-world.ts';

/** Runs each timer of the app at its times, in one of the processes that live, and not again while it runs. */
export function startTimerTriggers(processes: () => readonly AppProcess[], chance: Chance): void {
  const timers = processes()[0]?.timers ?? [];
  for (const { name, schedule } of timers) {
    const next = compileSchedule(schedule);
    const repeat = async () => {
      for (;;) {
        await wait(next(new Date(trueTime())).getTime() - trueTime());
        const living = processes();
        // A run that fails is made up for by the next one.
        if (living.length > 0)
          await chance
            .pick(living)
            .runTimer(name)
            .catch(() => undefined);
      }
    };
    void runIn(undefined, chance, repeat);
  }
}
