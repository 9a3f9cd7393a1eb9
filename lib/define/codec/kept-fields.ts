import { onceFor } from '../../base/once.ts';
import type { Entity } from '../declaration/entity.ts';

/** Fields that only the engine sets. A write keeps them. */
export const keptFields = onceFor((entity: Entity): readonly string[] =>
  entity.patterns.flatMap((pattern) => pattern.keptFields?.(entity) ?? []),
);

/** Fields that callers cannot write: the kept fields and the derived fields. */
export const decidedFields = onceFor((entity: Entity): readonly string[] => [
  ...keptFields(entity),
  ...Object.keys(entity.derived),
]);

/** Fields whose stored value may be a reference. */
export const referenceFields = onceFor((entity: Entity): readonly string[] =>
  entity.patterns.flatMap((pattern) => pattern.references?.(entity) ?? []),
);
