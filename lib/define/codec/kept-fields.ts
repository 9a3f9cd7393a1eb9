import type { Entity } from '../entity.ts';

/** Fields that only the engine writes and that a write keeps. */
export function keptFields(entity: Entity): string[] {
  return entity.patterns.flatMap((pattern) => pattern.keptFields?.(entity) ?? []);
}

/** Fields that callers cannot write: the kept ones, and those that are derived from other fields of the entity. */
export function decidedFields(entity: Entity): string[] {
  return [...keptFields(entity), ...Object.keys(entity.derived)];
}

/** Fields whose stored value may be a reference. */
export function referenceFields(entity: Entity): string[] {
  return entity.patterns.flatMap((pattern) => pattern.references?.(entity) ?? []);
}
