import { isDeepStrictEqual } from 'node:util';
import { pick, type Values } from '../../lib/base/values.ts';
import type { Slots } from '../../lib/define/declaration/declaration.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { periodOf, periodsBetween } from '../../lib/define/keys/calendar.ts';
import type { SeriesPoint } from '../../lib/features/data-series/series-span.ts';
import type { Step } from './steps.ts';
import type { WalkWorld } from './walk-world.ts';

/** The length of a span is limited. */
const MAX_PERIODS = 30;

/** Steps that were taken, with their outcomes. */
export interface History {
  readonly steps: readonly (Step & { readonly outcome: string })[];
  /** False if writers took them concurrently. */
  readonly isInOrder: boolean;
}

interface Counted {
  readonly key: Values;
  readonly counts: readonly number[];
}

/** Compares the counts that the store returns, of each key and as spans, with what the steps have counted. */
export async function compareSeries({ store }: WalkWorld, entity: Entity, history: History): Promise<string[]> {
  const { series, name } = entity;
  if (!series) return [];
  const all: string[] = [];
  const ofEntity = history.steps.filter(({ of }) => of === name);
  const counted: Counted[] = [];
  for (const [text, steps] of Map.groupBy(ofEntity, ({ key }) => JSON.stringify(key))) {
    const key: Values = JSON.parse(text);
    const counts = expectedCounts(series, { ...history, steps });
    if (!counts) continue;
    const found = (await store[name].get(key))?.counts ?? counts.map(() => 0);
    if (!isDeepStrictEqual(found, counts)) all.push(difference(entity, `counts of ${text}`, found, counts));
    counted.push({ key, counts });
  }
  if (series.span) all.push(...(await compareSpans({ store }, entity, counted)));
  return all;
}

/** Undefined if the steps do not tell: concurrent ones may have any order, and several increments may have succeeded in part. */
function expectedCounts({ first, last }: Slots, { steps, isInOrder }: History): readonly number[] | undefined {
  const isCertain = (step: History['steps'][number]) =>
    step.do === 'increment' ? step.outcome === 'ok' : isInOrder && ['ok', 'not-found'].includes(step.outcome);
  if (!steps.every(isCertain)) return undefined;
  const counts = Array.from({ length: last - first + 1 }, () => 0);
  for (const { do: write, values = {} } of steps) {
    if (write === 'delete') counts.fill(0);
    for (const [slot, value] of Object.entries(values)) {
      const at = Number(slot) - first;
      counts[at] = Number(value) + (write === 'increment' ? (counts[at] ?? 0) : 0);
    }
  }
  return counts;
}

async function compareSpans(
  { store }: Pick<WalkWorld, 'store'>,
  entity: Entity,
  counted: readonly Counted[],
): Promise<string[]> {
  const { span } = entity.series ?? {};
  if (!span) return [];
  const all: string[] = [];
  const others = entity.keyFields.filter((field) => field !== span.field);
  const periodIn = ({ key }: Counted) => String(key[span.field]);
  for (const [text, keys] of Map.groupBy(counted, ({ key }) => JSON.stringify(pick(key, others))))
    for (let left = keys.toSorted((one, other) => (periodIn(one) < periodIn(other) ? -1 : 1)); left.length > 0; ) {
      const [first] = left.map(periodIn);
      const spanned = left.filter((one) => periodsBetween(span.per, first ?? '', periodIn(one)).length <= MAX_PERIODS);
      left = left.slice(spanned.length);
      const bounds = { from: first, to: spanned.map(periodIn).at(-1) };
      const points: readonly SeriesPoint[] = await store[entity.name].span(JSON.parse(text), bounds);
      const ofPeriod = Map.groupBy(points, ({ at }) => periodOf(span.per, at));
      for (const { key, counts } of spanned) {
        const found = ofPeriod.get(String(key[span.field]))?.map(({ count }) => count) ?? [];
        // A year may have a slot less than another.
        const wanted = counts.slice(0, Math.max(found.length, counts.length - 1));
        if (!isDeepStrictEqual(found, wanted))
          all.push(difference(entity, `span of ${text}, ${JSON.stringify(key)}`, found, wanted));
      }
    }
  return all;
}

function difference({ name }: Entity, what: string, found: readonly number[], wanted: readonly number[]): string {
  const shown = (counts: readonly number[]) =>
    JSON.stringify(Object.fromEntries(counts.flatMap((count, index) => (count === 0 ? [] : [[index, count]]))));
  return `${name}, ${what}: ${shown(found)}, but should be ${shown(wanted)}, by the index of the slot`;
}
