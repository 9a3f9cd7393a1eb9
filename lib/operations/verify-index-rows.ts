import pMap from 'p-map';
import type { Entity, Values } from '../define/entity.ts';
import { liveValues, toSnapshot } from '../define/entity-codec.ts';
import { addressIfAny, indexEntriesOf, isIndexed, isSameEntry } from '../define/index-entries.ts';
import type { Index, IndexEntity } from '../define/indexes.ts';
import { buildKey, parseKey } from '../define/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { hasLiveClaim } from '../engine/write/unique-claim.ts';
import {
  dropList,
  emptyLostList,
  isLostList,
  listAction,
  membersOf,
  readAnyList,
  readList,
  toStoredList,
} from '../patterns/member-list.ts';
import { type Address, type Row, readRow, tryAction } from '../storage/rows.ts';
import type { Suspicion } from './finding.ts';
import { settle, workOn } from './verify-entity.ts';

/** What is there and no entity wants: copies, members of lists, claims. */

const MEMBERS_CONCURRENCY = 16;

/**
 * Looks at a row that is no entity, of a list at these members alone where they are given. The row is read before the entity,
 * and changed under its ETag.
 */
export async function checkLeftOver(
  engine: Engine,
  entity: Entity,
  scanned: Row,
  members?: readonly string[],
): Promise<Suspicion[]> {
  const row = await readAnyList(engine.storage, scanned);
  if (!row) return [];
  if (row.properties.EntityType === 'list') return checkMembers(engine, entity, row, members && new Set(members));
  const { SourcePartition, SourceRow, EntityType } = row.properties;
  if (SourceRow === undefined || (EntityType !== entity.name && EntityType !== 'claim')) return [];
  const source = { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) };
  if (hasLiveClaim(row, { intent: workOn(source) }, engine.now())) return [];
  const values = await readValues(engine, entity, source);
  const indexes = Object.entries(entity.indexes).filter(([, index]) => isRowOf(entity, index, row));
  const isWanted = indexes.some(([name, index]) => wants(entity, { name, index, values }, row));
  if (isWanted || indexes.length === 0) return [];
  const [[of] = ['']] = indexes;
  const { table, partition, row: key, etag } = row;
  const repair = async () => {
    if (table === entity.table) return tryAction(engine.storage, row, { kind: 'delete', row: key, etag });
    return settle(engine, entity, source, { index: of, table, partition, row: key });
  };
  return [{ what: 'left over', of, table, partition, row: key, repair }];
}

/** Whether the row may be one of the index's: it is in its table, and its key is of its template. */
export function isRowOf(entity: Entity, index: Index, { table, row }: Row): boolean {
  return table === (index.remote ?? entity).table && parseKey(index.row, row) !== undefined;
}

function wants(
  entity: Entity,
  { name, index, values }: { name: string; index: Index; values: Values | undefined },
  { table, partition, row }: Row,
): boolean {
  if (index.kind === 'intra-partition') return isIndexed(index, values) && buildKey(index.row, values) === row;
  return indexEntriesOf(entity, values).some((indexEntry) =>
    isSameEntry(indexEntry, { index: name, table, partition, row }),
  );
}

async function checkMembers(
  engine: Engine,
  entity: Entity,
  row: Row,
  some: ReadonlySet<string> | undefined,
): Promise<Suspicion[]> {
  const lists = Object.entries(entity.indexes).flatMap(([name, index]) =>
    index.kind === 'index-entity' && isRowOf(entity, index, row) ? [{ name, index }] : [],
  );
  const { table, partition, row: key } = row;
  const [first] = lists;
  if (first && isLostList(row)) {
    const repair = () => emptyLostList(engine.storage, row);
    return [{ what: 'lost list', of: first.name, table, partition, row: key, repair }];
  }
  const members = membersOf(row).filter((member) => !some || some.has(member));
  const suspicions = await pMap(
    lists.flatMap((list) => members.map((member) => ({ ...list, member }))),
    (one) => checkMember(engine, entity, row, one),
    { concurrency: MEMBERS_CONCURRENCY },
  );
  return suspicions.flat();
}

async function checkMember(
  engine: Engine,
  entity: Entity,
  row: Row,
  { name, index, member }: { name: string; index: IndexEntity; member: string },
): Promise<Suspicion[]> {
  const { table, partition, row: key } = row;
  const inPartition = index.remote ? {} : parseKey(entity.partition, partition);
  const ids: Values = { ...inPartition, ...parseKey(index.row, key), ...parseKey(index.holds, member) };
  const source = addressIfAny(entity, ids);
  const isWanted = async () => {
    const values = source && (await readValues(engine, entity, source));
    return index.remote
      ? indexEntriesOf(entity, values).some((indexEntry) =>
          isSameEntry(indexEntry, { index: name, table, partition, row: key, member }),
        )
      : isIndexed(index, values) && buildKey(index.row, values) === key;
  };
  if (await isWanted()) return [];
  const repair = async () => {
    if (index.remote && source)
      return settle(engine, entity, source, { index: name, table, partition, row: key, member });
    return dropMember(engine, row, member, isWanted);
  };
  return [{ what: 'left over', of: name, table, partition, row: key, repair }];
}

/**
 * Each of several members takes the list as the one before has left it. The list is read before the entity is, once more,
 * and whoever joins writes the list: so nobody who has joined meanwhile is dropped.
 */
async function dropMember(
  { storage }: Engine,
  address: Address,
  member: string,
  isWanted: () => Promise<boolean>,
): Promise<boolean> {
  const list = await readList(storage, address);
  if (await isWanted()) return true;
  const action = listAction(list, address.row, { add: [], remove: [member] });
  if (!action) return true;
  const isDone = await tryAction(storage, address, await toStoredList(storage, address, action));
  if (isDone) await dropList(storage, list);
  return isDone;
}

async function readValues({ storage }: Engine, entity: Entity, address: Address): Promise<Values | undefined> {
  const row = await readRow(storage, address);
  return liveValues(toSnapshot(entity, row?.properties.EntityType === entity.name ? row : undefined));
}
