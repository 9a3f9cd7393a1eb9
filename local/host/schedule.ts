import { Cron } from 'croner';
import { parseTimeSpan } from './time-span.ts';

/** What NCrontab accepts in a field; croner also knows L, W, #, ? and words such as @daily. */
const FIELD =
  /^(?:\*|(?:\d+|[a-z]{3})(?:-(?:\d+|[a-z]{3}))?)(?:\/\d+)?(?:,(?:\d+|[a-z]{3})(?:-(?:\d+|[a-z]{3}))?(?:\/\d+)?)*$/i;
/** NCrontab counts the days of the week from 0 to 6. */
const SEVEN = /(?:^|[,-])0*7(?:$|[,/-])/;

/**
 * The next time of NCrontab with 5 or 6 fields, whose day of month and day of week must both match, or of a TimeSpan between
 * runs. Throws a plain error.
 */
export function compileSchedule(schedule: string): (from: Date) => Date {
  const interval = parseTimeSpan(schedule);
  if (interval) return (from) => new Date(from.getTime() + interval);
  const fields = schedule.trim().split(/\s+/);
  if (!fields.every((field) => FIELD.test(field)) || SEVEN.test(fields.at(-1) ?? ''))
    throw new Error('it is neither NCrontab with 5 or 6 fields nor a TimeSpan');
  const cron = new Cron(schedule, { paused: true, mode: '5-or-6-parts', domAndDow: true, timezone: 'UTC' });
  const next = (from: Date) => {
    const date = cron.nextRun(from);
    if (!date) throw new Error('it has no future run');
    return date;
  };
  next(new Date());
  return next;
}
