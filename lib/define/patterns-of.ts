import type { Entity } from './entity.ts';
import type { Pattern } from './pattern.ts';

let list: readonly Pattern[] = [];

/** Sets the list until the model attaches it to its entities. */
export function usePatterns(patterns: readonly Pattern[]): void {
  list = patterns;
}

/** The patterns that an entity uses, in the order of their list. */
export function patternsOf(entity: Entity): readonly Pattern[] {
  return list.filter((pattern) => pattern.isUsed(entity));
}

/** Fields that only the engine writes and that a write keeps. */
export function keptFields(entity: Entity): string[] {
  return patternsOf(entity).flatMap((pattern) => pattern.keptFields?.(entity) ?? []);
}

/** Fields that callers cannot write: the kept ones, and those that are derived from other fields of the entity. */
export function decidedFields(entity: Entity): string[] {
  return [...keptFields(entity), ...Object.keys(entity.derived)];
}

/** Fields whose stored value may be a reference. */
export function referenceFields(entity: Entity): string[] {
  return patternsOf(entity).flatMap((pattern) => pattern.references?.(entity) ?? []);
}
