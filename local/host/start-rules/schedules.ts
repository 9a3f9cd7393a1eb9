import type { HostedFunction, TimerTrigger } from '../load-app.ts';
import { compileSchedule } from '../schedule.ts';

/** `TimerSchedule.Create` of azure-webjobs-sdk-extensions: NCrontab or a TimeSpan. */
export function findScheduleErrors(functions: readonly HostedFunction<TimerTrigger>[]): string[] {
  return functions.flatMap(({ name, trigger: { schedule } }) => {
    try {
      compileSchedule(schedule);
      return [];
    } catch (error) {
      return [`The function ${name} has the invalid schedule ${schedule}: ${(error as Error).message}.`];
    }
  });
}
