import pMap from 'p-map';
import type { Values } from '../base/values.ts';
import type { Change } from '../define/declaration/change.ts';
import type { Engine } from '../define/declaration/engine.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Feature } from '../define/declaration/feature.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import { type IndexEntity, indexEntity } from '../define/declaration/indexes.ts';
import type { RemoteIndex } from '../define/declaration/remote-index.ts';
import { liveValues } from '../define/declaration/snapshot.ts';
import { buildKey, parseKey } from '../define/keys/key-template.ts';
import {
  addressIfAny,
  indexEntriesOf,
  indexesOfKind,
  indexShape,
  isIndexed,
  isRowOf,
  isSameEntry,
  selectIndexed,
  shapesOf,
} from '../define/places/index-entries.ts';
import { eachErrors, settleErrors } from '../define/validate/index-errors.ts';
import { readValues, repairEntries, repairSibling } from '../engine/reconcile/repair.ts';
import { settleMember } from '../pattern-helpers/list-upkeep.ts';
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
} from '../pattern-helpers/member-list.ts';
import { type Address, type Row, tryAction } from '../storage/rows.ts';

/**
 * Index entities pattern: one row lists the entities that share a value. A list in the entities' own partition changes in
 * their entity group transaction, under its ETag; a list in another partition is kept by the eventual transaction.
 */
export const indexEntities: Feature<Entity> = {
  name: 'index entities',
  isUsed: (entity) => indexesOf(entity).length > 0,
  write: {
    *siblings(entity, change) {
      for (const { row } of listChanges(entity, change)) yield row;
    },
    plan(entity, changes, { siblings, actions, writeId }) {
      const lists = Map.groupBy(
        changes.flatMap((change) => listChanges(entity, change)),
        ({ row }) => row,
      );
      for (const [row, members] of lists) {
        const found = siblings.get(row);
        const add = members.flatMap((change) => change.add);
        const remove = members.flatMap((change) => change.remove);
        const action = listAction(found, row, { add, remove });
        if (action) actions.push({ action, part: { of: 'sibling' } });
        // The member is already in the list. Writing the list makes a concurrent removal of the member conflict.
        else if (found && add.length > 0)
          actions.push({
            action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag: found.etag },
            part: { of: 'sibling' },
          });
      }
    },
  },
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
    rowKeys: (entity) =>
      indexesOf(entity).flatMap(([name, { remote, row }]) =>
        remote ? [] : [{ what: `the rows of its index "${name}"`, row }],
      ),
    siblingForm: {
      read: readList,
      readAny: readAnyList,
      complete: async (storage, row) => (isLongList(row) ? readAnyList(storage, row) : row),
      has: (row) => isList(row),
      members: (row) => (isList(row) ? membersOf(row) : []),
      write: toStoredList,
      drop: dropList,
    },
    remote: (entity) =>
      indexesOf(entity).flatMap(([name, index]) => (index.remote ? [toRemoteIndex(name, index, index.remote)] : [])),
    shapes: (entity) => shapesOf(indexesOf(entity), (index) => ({ ...indexShape(index), holds: index.holds.template })),
    former({ kind, table, partition = '', row, holds = '' }, name) {
      if (kind !== 'index-entity') return undefined;
      const when = () => false;
      const index =
        table === undefined ? indexEntity({ row, holds, when }) : indexEntity({ table, partition, row, holds, when });
      return { indexes: { [name]: index } };
    },
  },
  check: {
    async entity(engine, entity, { address, snapshot, only }) {
      const suspicions: Suspicion[] = [];
      for (const [of, index] of indexesOf(entity)) {
        if (index.remote || !isIndexed(index, snapshot.values)) continue;
        if (only !== undefined && only !== of) continue;
        const there = { ...address, row: buildKey(index.row, snapshot.values) };
        const found = await readAnyList(engine.storage, there);
        const action = listAction(found, there.row, { add: [buildKey(index.holds, snapshot.values)], remove: [] });
        if (!action) continue;
        const repair = async () => {
          const stored = await toStoredList(engine.storage, there, action);
          const isRepaired = await repairSibling(engine, address, snapshot, stored);
          if (isRepaired) await dropList(engine.storage, found);
          return isRepaired;
        };
        suspicions.push({
          kind: 'missing',
          of,
          ...there,
          repair,
          losesValues: found !== undefined && isLostList(found),
        });
      }
      return suspicions;
    },
    async row(engine, entity, row, members) {
      if (!isList(row)) return undefined;
      const lists = indexesOf(entity).flatMap(([name, index]) =>
        isRowOf(entity, index, row) ? [{ name, index }] : [],
      );
      const { table, partition, row: key } = row;
      const [first] = lists;
      if (first && isLostList(row)) {
        const repair = () => emptyLostList(engine.storage, row);
        return [{ kind: 'lost-list', of: first.name, table, partition, row: key, repair, losesValues: true }];
      }
      const some = members && new Set(members);
      const checked = membersOf(row).filter((member) => !some || some.has(member));
      const suspicions = await pMap(
        lists.flatMap((list) => checked.map((member) => ({ ...list, member }))),
        (one) => verifyMember(engine, entity, row, one),
        { concurrency: MEMBERS_CONCURRENCY },
      );
      return suspicions.flat();
    },
  },
};

const MEMBERS_CONCURRENCY = 16;

const isList = ({ properties }: Row) => properties.EntityType === LIST;
const indexesOf = (entity: Entity) => indexesOfKind(entity, 'index-entity');

function toRemoteIndex(name: string, index: IndexEntity, remote: NonNullable<IndexEntity['remote']>): RemoteIndex {
  return {
    name,
    ...remote,
    row: index.row,
    isContested: false,
    isLeftToQueue: index.settle === 'queue',
    selections: (values) => selectIndexed(index, values),
    list: {
      member: index.holds,
      settle: settleMember,
      holds: (found, member) => membersOf(found).includes(member),
      restore: emptyLostList,
    },
  };
}

/** The lists in the partition that an entity leaves or joins. */
function listChanges(entity: Entity, { before, after }: Change) {
  return indexesOf(entity).flatMap(([, index]) => {
    if (index.remote) return [];
    const entry = (values: Values | undefined) =>
      isIndexed(index, values)
        ? { row: buildKey(index.row, values), member: buildKey(index.holds, values) }
        : undefined;
    const from = entry(liveValues(before));
    const to = entry(after);
    if (from?.row === to?.row && from?.member === to?.member) return [];
    return [
      ...(from ? [{ row: from.row, add: [], remove: [from.member] }] : []),
      ...(to ? [{ row: to.row, add: [to.member], remove: [] }] : []),
    ];
  });
}

async function verifyMember(
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
      return repairEntries(engine, entity, source, { index: name, table, partition, row: key, member });
    return dropMember(engine, row, member, isWanted);
  };
  return [{ kind: 'orphaned', of: name, table, partition, row: key, repair }];
}

/**
 * Removes a member from its list. The list is read before the entity is read again. An entity that joins the list writes it,
 * so the ETag of the list keeps the removal from dropping an entity that has joined meanwhile.
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
