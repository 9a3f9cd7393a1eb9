import type { Model, Values } from '../../lib/index.ts';
import { addComputed } from '../../local/packs/example-values.ts';
import { roundsOf } from '../../local/walk/walk.ts';
import { operationsCheck } from '../kit/operations.ts';
import type { Event } from './event.ts';
import type { Chance } from './world/chance.ts';

/** What an operator loads in bulk at the beginning of a world. */

const ROWS = 60;
/** The rows of the walk of another seed: those of the writes of clients would all be there. */
const OTHER_SEED = 500_000;
const WRITES = 800;
/** A load of the most rows sends about so many requests. */
const MOST_REQUESTS = 50;
/** Another run begins when one has stood still for a minute. */
const STANDS_MS = [20_000, 70_000, 100_000];
const STANDS_WITHIN_MS = 2_000;

/** Plans the load of an entity of a model, or of none that has a load. */
export function importOf(model: Model, seed: number, chance: Chance): Event | undefined {
  const steps = [...roundsOf(model, { seed: seed + OTHER_SEED, writes: WRITES })].flatMap((round) => round.steps);
  const entities = model.list.filter(
    (entity) => operationsCheck.canBulkLoad(entity) && Object.keys(entity.attachments).length === 0,
  );
  const loads = entities.flatMap((entity) => {
    const created = steps.flatMap(({ of, do: write, values }) =>
      of === entity.name && write === 'create' && values ? [values] : [],
    );
    const hasKey = (values: Values) => {
      const all = addComputed(entity, values);
      return entity.keyFields.every((field) => all[field] !== undefined);
    };
    // A load that is run again takes a row that is there twice for one that it has stored.
    const distinct = new Map(created.filter(hasKey).map((values) => [JSON.stringify(values), values]));
    return distinct.size > 0 ? [{ of: entity.name, rows: [...distinct.values()].slice(0, ROWS) }] : [];
  });
  if (loads.length === 0) return undefined;
  // Rows with the same unique value are what a load has most rules for.
  const contested = entities.filter(({ indexes }) =>
    Object.values(indexes).some((index) => index.kind === 'inter-partition' && index.unique),
  );
  const some = loads.filter(({ of }) => contested.some(({ name }) => name === of));
  const diesAt = Array.from({ length: chance.pick([0, 1, 1, 2]) }, () => 1 + chance.below(MOST_REQUESTS));
  const stands = { standsAfterMs: chance.next() * STANDS_WITHIN_MS, standsForMs: chance.pick(STANDS_MS) };
  return {
    do: 'import',
    ...chance.pick(some.length > 0 && chance.isTrue(0.5) ? some : loads),
    diesAt,
    ...(chance.isTrue(0.3) && stands),
  };
}
