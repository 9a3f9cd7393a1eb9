import fc from 'fast-check';
import { aimSteps } from '../../local/walk/aim-steps.ts';
import { type Step, takeStep } from '../../local/walk/steps.ts';
import { creationOf } from '../../local/walk/values.ts';
import type { WalkWorld } from '../../local/walk/walk-world.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';

const ENTITIES_EACH = 6;

/** Writes some entities of each declaration, with files and long texts, and handles the messages. */
export async function fill(world: WalkWorld, { seed }: { readonly seed: number }): Promise<void> {
  const { list } = world.model;
  const rank = (entity: Entity, seen: readonly Entity[] = []): number => {
    const { references, childOf, denormalized } = entity;
    const needed = [
      ...Object.values(references).map(({ to }) => to),
      ...Object.values(denormalized).map(({ source }) => source),
      ...(childOf ? [childOf] : []),
    ].filter((one) => one !== entity && !seen.includes(one));
    return Math.max(0, ...needed.map((one) => rank(one, [...seen, entity]) + 1));
  };
  const inOrder = list.toSorted((one, other) => rank(one) - rank(other));
  const steps = inOrder.flatMap((entity) => creationSteps(entity, seed));
  const aimed = aimSteps(
    list,
    steps.map((step, index) => [step, 4 * index + 1]),
  );
  for (const step of aimed) await takeStep(world, step);
  await world.worker.settle();
}

function creationSteps(entity: Entity, seed: number): Step[] {
  const { name: of, series, large, attachments, keyFields } = entity;
  // The values with the most fields, because each field may have rows of its own.
  const all = fc.sample(creationOf(entity), { seed, numRuns: 60 });
  const richest = all.toSorted((one, other) => Object.keys(other).length - Object.keys(one).length);
  const distinct = [
    ...new Map(
      richest.toReversed().map((values) => [JSON.stringify(baseValues.pick(values, keyFields)), values]),
    ).values(),
  ];
  const some = distinct.slice(-ENTITIES_EACH);
  if (series)
    return some.map((values) => ({
      of,
      do: 'set',
      key: baseValues.pick(values, keyFields),
      values: Object.fromEntries([series.first, series.last, ...spread(series)].map((slot) => [slot, 3])),
    }));
  return some.flatMap((values): Step[] => {
    const long = Object.fromEntries(large.map((field) => [field, 'long '.repeat(60_000)]));
    const files = Object.keys(attachments).map(
      (field): Step => ({ of, do: 'putFile', key: baseValues.pick(values, keyFields), field }),
    );
    return [{ of, do: 'create', values: { ...values, ...long } }, ...files];
  });
}

/** Of a series with a blob, more counts than a row has. */
const spread = ({ first, last, overflow }: NonNullable<Entity['series']>) =>
  overflow ? Array.from({ length: Math.min(250, last - first) }, (_, index) => first + index) : [];
