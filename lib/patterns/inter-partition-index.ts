import type { Entity } from '../define/entity.ts';
import type { InterPartitionIndex } from '../define/indexes.ts';
import { copyProperties, selectIndexed } from '../define/keys/index-entries.ts';
import type { Pattern } from '../define/pattern.ts';
import type { RemoteIndex } from '../define/remote-index.ts';

/**
 * Inter-partition secondary index pattern: a copy of the entity in another partition or table, kept by the engine's eventual
 * transaction. The rows of a unique index are contested: no two entities share a value.
 */
export const interPartitionIndexes: Pattern<Entity> = {
  name: 'inter-partition secondary index',
  isUsed: ({ indexes }) => Object.values(indexes).some(({ kind }) => kind === 'inter-partition'),
  leavesTombstone: true,

  remoteIndexes: (entity) =>
    Object.entries(entity.indexes).flatMap(([name, index]) =>
      index.kind === 'inter-partition' ? [toRemoteIndex(entity, name, index)] : [],
    ),
};

function toRemoteIndex(entity: Entity, name: string, index: InterPartitionIndex): RemoteIndex {
  const { remote, row, unique, copies } = index;
  return {
    name,
    ...remote,
    row,
    isContested: unique,
    selections: (values) => selectIndexed(index, values),
    properties: (values) => copyProperties(entity, values, copies),
  };
}
