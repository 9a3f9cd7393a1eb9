import { keptFor, onceFor } from '../../base/once.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
import type { Total } from '../../define/declaration/totals.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';
import { requireBuilt } from './unbuilt-indexes.ts';

/** How often this process has read through each index, so that operators see those that nobody reads. The model bounds the number of keys. */
const countsOf = keptFor((_: Storage) => new Map<string, number>());

const namesOf = onceFor(
  ({ indexes, totals }: Entity) =>
    new Map([...Object.entries(indexes), ...Object.entries(totals)].map(([name, one]) => [one as Index | Total, name])),
);

/** Called by each read through an index or of totals, for callers, for rules and for lookups. Throws `not-built`. */
export async function beginIndexRead(engine: Engine, entity: Entity, index: Index | Total): Promise<void> {
  const name = namesOf(entity).get(index);
  if (name === undefined) return;
  const counts = countsOf(engine.storage);
  const key = indexKey(entity, name);
  counts.set(key, (counts.get(key) ?? 0) + 1);
  await requireBuilt(engine, entity, name);
}

/** The counts by `indexKey`, since the process started. */
export function indexReads(storage: Storage): ReadonlyMap<string, number> {
  return countsOf(storage);
}

export function indexKey(entity: Pick<Entity, 'name'>, index: string): string {
  return `${entity.name}/${index}`;
}
