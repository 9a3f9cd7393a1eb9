import type { SeriesDescription } from '../api/model.ts';

/** The choices of a chart's span. The API accepts at most 400 rows and 90,000 counts. */

interface Span {
  readonly title: string;
  readonly days: number;
}

const MAX_ROWS = 400;
const MAX_COUNTS = 90_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MONTHS_OF_YEAR = 12;
/** The slots of a key divide the longest period. */
const LONGEST_DAYS: Readonly<Record<string, number>> = { day: 1, month: 31, year: 366 };
const DAYS: Readonly<Record<string, number>> = { day: 1, month: 30, year: 365 };
const SPANS: readonly Span[] = [
  { title: 'last 24 hours', days: 1 },
  { title: 'last 7 days', days: 7 },
  { title: 'last 30 days', days: 30 },
  { title: 'last year', days: 365 },
  { title: 'last 5 years', days: 1_825 },
];

/** The spans that a chart of this series can have, from a fraction of a row on. */
export function spansOf({ first, last, span }: SeriesDescription): readonly Span[] {
  const days = DAYS[span?.per ?? 'day'] ?? 1;
  const slots = last - first + 1;
  return SPANS.filter((each) => {
    const rows = Math.ceil(each.days / days) + 1;
    return each.days >= days && rows <= MAX_ROWS && rows * slots <= MAX_COUNTS;
  });
}

/** The bounds of a span that ends now, in UTC. The API includes both slots, so the first one is a slot later than the span is long. */
export function boundsOf(
  { days }: Span,
  series: SeriesDescription,
  now = Date.now(),
): { readonly from: string; readonly to: string } {
  const text = (time: number) => `${new Date(time).toISOString().slice(0, 16)}Z`;
  return { from: text(nextSlot(series, now - days * DAY_MS)), to: text(now) };
}

/** An instant in the next slot, or in the next minute if the slots are shorter, because the bounds are minutes. */
function nextSlot({ first, last, span }: SeriesDescription, time: number): number {
  const per = span?.per ?? 'day';
  const slots = last - first + 1;
  const date = new Date(time);
  if (per === 'year' && slots === MONTHS_OF_YEAR) return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return time + Math.max(MINUTE_MS, ((LONGEST_DAYS[per] ?? 1) * DAY_MS) / slots);
}
