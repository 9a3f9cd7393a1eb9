import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { intraPartitionIndex } from '../../define/declaration/indexes.ts';
import { indexesOfKind, projectionOf } from '../../define/places/index-entries.ts';
import { eachErrors } from '../../define/validate/feature-errors.ts';

/**
 * Intra-partition secondary index pattern: a copy of the entity in the same partition under another row key. Both change in
 * one entity group transaction.
 */
export const intraPartitionIndexes: Feature = {
  name: 'intra-partition secondary index',
  isUsed: (entity) => indexesOf(entity).length > 0,
  *validate(entity) {
    for (const [name, index] of indexesOf(entity)) yield* eachErrors(name, index);
  },
  projections: {
    of: (entity) => indexesOf(entity).map(([name, index]) => projectionOf(entity, name, index)),
    former: ({ kind, row }, name) =>
      kind === 'intra-partition' ? { indexes: { [name]: intraPartitionIndex({ row, when: () => false }) } } : undefined,
  },
};

const indexesOf = (entity: Entity) => indexesOfKind(entity, 'intra-partition');
