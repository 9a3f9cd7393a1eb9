import { type BatchDone, RowkeyError } from '../lib/index.ts';
import type { Entity } from './kit/define.ts';
import { type Engine, engineWrite } from './kit/engine.ts';

/** Puts many entities in one batch, and returns the outcome or error of each. */
export async function putAll(
  engine: Engine,
  entity: Entity,
  list: readonly unknown[],
): Promise<(BatchDone['outcome'] | RowkeyError)[]> {
  const outcomes = await engineWrite.writeBatch(
    engine,
    entity,
    list.map((put) => ({ put })),
  );
  return outcomes.map((outcome) => (outcome instanceof RowkeyError ? outcome : outcome.outcome));
}
