import { keptFor } from '../../base/once.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { InterPartitionIndex } from '../../define/declaration/indexes.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { countPartitionWrites } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';

interface ListSource<List> {
  /**
   * The index that lists all entities: see `listOfAll`. It settles inline, because a process would keep a list that it has read before
   * the queue settles an entry.
   */
  index(entity: Entity): InterPartitionIndex;
  /** How long a process may serve a list that another process has changed, in milliseconds. */
  maxAge(entity: Entity): number;
  read(engine: Engine, entity: Entity): Promise<List>;
  /** False for a list that takes too much memory. */
  canKeep(list: List): boolean;
}

interface Kept<List> {
  readonly readAt: number;
  readonly writes: number;
  readonly list: Promise<List>;
}

/**
 * Reads the list of all entities: from the memory of the process, or by one read, which concurrent callers share. The list is read
 * again after `maxAge`, and after each write of this process to the partition of the index.
 */
export function keepList<List>(source: ListSource<List>): (engine: Engine, entity: Entity) => Promise<List> {
  const listsOf = keptFor((_: Storage) => new Map<Entity, Kept<List>>());
  return async (engine, entity) => {
    const { storage, now } = engine;
    const { table, partition } = source.index(entity).remote;
    const writes = countPartitionWrites(storage, { table, partition: buildKey(partition, {}) });
    const lists = listsOf(storage);
    const known = lists.get(entity);
    const age = known ? now() - known.readAt : Number.POSITIVE_INFINITY;
    // A clock that was set back must not prolong the life of a list.
    if (known?.writes === writes && age >= 0 && age < source.maxAge(entity)) return known.list;
    const list = source.read(engine, entity);
    const kept = { readAt: now(), writes, list };
    lists.set(entity, kept);
    const forget = () => {
      if (lists.get(entity) === kept) lists.delete(entity);
    };
    // A failure is not kept, so that the next call reads again.
    list.then((read) => source.canKeep(read) || forget(), forget);
    return list;
  };
}
