import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { interPartitionIndex } from '../../define/declaration/indexes.ts';
import { indexesOfKind, indexKeyFields, projectionOf } from '../../define/places/index-entries.ts';
import { settleErrors } from '../../define/validate/feature-errors.ts';

/**
 * Inter-partition secondary index pattern: a copy of the entity in another partition or table, kept by the engine's eventual
 * transaction. The rows of a unique index are contested: no two entities share a value.
 */
export const interPartitionIndexes: Feature = {
  name: 'inter-partition secondary index',
  isUsed: (entity) => indexesOf(entity).length > 0,
  *validate(entity) {
    for (const [name, index] of indexesOf(entity)) {
      yield* settleErrors(name, index);
      const readable = [...index.remote.partition.readable, ...index.row.readable];
      const missing = entity.keyFields.filter((field) => !readable.includes(field)).join(', ');
      const hashed = indexKeyFields(index).find((field) => !readable.includes(field));
      if (!index.unique && missing !== '')
        yield `the index "${name}" is not unique and lacks ${missing} in its key, so entities with one value would share a row. Add ${missing} to its key, or make it unique.`;
      if (index.unique && hashed)
        yield `the index "${name}" is unique and has "${hashed}" only as a hash, so two values could be taken for one. Add the field to its key as it is, too.`;
      if (index.unique && index.settle !== 'inline')
        yield `the index "${name}" is unique and has settle "${index.settle}", and the writer must confirm its own claim. Use "inline".`;
    }
  },
  projections: {
    former: ({ kind, table = '', partition = '', row }, name) =>
      kind === 'inter-partition'
        ? { indexes: { [name]: interPartitionIndex({ table, partition, row, when: () => false }) } }
        : undefined,
    of: (entity) => indexesOf(entity).map(([name, index]) => projectionOf(entity, name, index)),
  },
};

const indexesOf = (entity: Entity) => indexesOfKind(entity, 'inter-partition');
