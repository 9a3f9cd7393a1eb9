import type { Entity } from '../lib/define/declaration/entity.ts';
import type { Engine } from '../lib/engine/engine.ts';
import { writeBatch } from '../lib/engine/write/entity-batch.ts';
import { type BatchDone, RowkeyError } from '../lib/index.ts';

/** Puts many entities in one batch, and returns the outcome or error of each. */
export async function putAll(
  engine: Engine,
  entity: Entity,
  list: readonly unknown[],
): Promise<(BatchDone['outcome'] | RowkeyError)[]> {
  const outcomes = await writeBatch(
    engine,
    entity,
    list.map((put) => ({ put })),
  );
  return outcomes.map((outcome) => (outcome instanceof RowkeyError ? outcome : outcome.outcome));
}
