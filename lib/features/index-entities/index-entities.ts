import type { Entity } from '../../define/declaration/entity.ts';
import type { Feature } from '../../define/declaration/feature.ts';
import { indexEntity } from '../../define/declaration/indexes.ts';
import type { Merge } from '../../define/declaration/projection.ts';
import { indexesOfKind, projectionOf } from '../../define/places/index-entries.ts';
import { eachErrors, settleErrors } from '../../define/validate/index-errors.ts';
import {
  dropList,
  emptyLostList,
  isLongList,
  isLostList,
  LIST,
  listAction,
  membersOf,
  readAnyList,
  readList,
  toStoredList,
} from '../../engine/read/member-list.ts';
import { settleMember } from './list-upkeep.ts';

/**
 * Index entities pattern: one row lists the entities that share a value. A list in the entities' own partition changes in
 * their entity group transaction, under its ETag; a list in another partition is kept by the eventual transaction.
 */
export const indexEntities: Feature<Entity> = {
  name: 'index entities',
  isUsed: (entity) => indexesOf(entity).length > 0,
  *validate(entity) {
    for (const [name, index] of indexesOf(entity)) {
      yield* eachErrors(name, index);
      yield* settleErrors(name, index);
      // A list in the entities' partition is found by the partition key and the value that its members share.
      const known = index.remote ? [] : [...entity.partition.fields, ...index.row.readable];
      const missing = entity.keyFields.filter((field) => ![...index.holds.readable, ...known].includes(field));
      if (missing.length > 0)
        yield `the index "${name}" holds too little to find an entity. Add ${missing.join(', ')} to "holds".`;
      if (index.holds.readable.length === 0)
        yield `the index "${name}" holds no field. Add a field of the row key to "holds".`;
    }
  },
  projections: {
    of: (entity) => indexesOf(entity).map(([name, index]) => ({ ...projectionOf(entity, name, index), merge: LISTS })),
    former({ kind, table, partition = '', row, holds = '' }, name) {
      if (kind !== 'index-entity') return undefined;
      const when = () => false;
      const index =
        table === undefined ? indexEntity({ row, holds, when }) : indexEntity({ table, partition, row, holds, when });
      return { indexes: { [name]: index } };
    },
  },
};

const LISTS: Merge = {
  settle: settleMember,
  holds: (found, { member }) => member !== undefined && membersOf(found).includes(member),
  list: {
    has: ({ properties }) => properties.EntityType === LIST,
    change: listAction,
    members: (row) => (row.properties.EntityType === LIST ? membersOf(row) : []),
    read: readList,
    readAny: readAnyList,
    complete: async (storage, row) => (isLongList(row) ? readAnyList(storage, row) : row),
    write: toStoredList,
    drop: dropList,
    isLost: isLostList,
    restore: emptyLostList,
  },
};

const indexesOf = (entity: Entity) => indexesOfKind(entity, 'index-entity');
