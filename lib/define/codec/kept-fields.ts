import type { Entity } from '../entity.ts';

/** Fields that only the engine sets. A write keeps them. */
export function keptFields(entity: Entity): string[] {
  return entity.patterns.flatMap((pattern) => pattern.keptFields?.(entity) ?? []);
}

/** Fields that callers cannot write: the kept fields and the derived fields. */
export function decidedFields(entity: Entity): string[] {
  return [...keptFields(entity), ...Object.keys(entity.derived)];
}

/** Fields whose stored value may be a reference. */
export function referenceFields(entity: Entity): string[] {
  return entity.patterns.flatMap((pattern) => pattern.references?.(entity) ?? []);
}
