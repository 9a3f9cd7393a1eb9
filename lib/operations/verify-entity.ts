import { isDeepStrictEqual } from 'node:util';
import type { Entity, Values } from '../define/entity.ts';
import { type Live, liveValues, toSnapshot } from '../define/entity-codec.ts';
import { copyProperties, type IndexEntry, indexEntriesOf, isIndexed, isUnique } from '../define/index-entries.ts';
import { buildKey } from '../define/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { holdFor, UNHELD_MS } from '../engine/reconcile/hold.ts';
import { reconcile, sameCopy } from '../engine/reconcile/reconcile.ts';
import { commit, EntityChanged } from '../engine/write/eventual-transaction.ts';
import { claim, hasLiveClaim, isOwnedBy } from '../engine/write/unique-claim.ts';
import { RowkeyError } from '../errors.ts';
import { referredTo, withCopies } from '../patterns/denormalization.ts';
import { blobsOf } from '../patterns/large-entities.ts';
import { countAction } from '../patterns/maintained-count.ts';
import { dropList, emptyLostList, listAction, membersOf, readAnyList, toStoredList } from '../patterns/member-list.ts';
import { blobLength } from '../storage/blobs.ts';
import { type Action, type Address, type Row, readRange, readRow, tryAction, trySubmit } from '../storage/rows.ts';
import type { Suspicion } from './finding.ts';

/** What an entity wants and is not there, or is there otherwise. */

/** Looks at everything that one entity wants, or at what it wants of one index. */
export async function checkEntity(
  engine: Engine,
  entity: Entity,
  address: Address,
  only: string | undefined,
): Promise<Suspicion[]> {
  const snapshot = toSnapshot(entity, await readRow(engine.storage, address));
  if (snapshot.state !== 'live') return [];
  // It is looked after by its move or archive; where that has come to nothing, an operator has to look at it.
  if (snapshot.system.MovingFrom)
    return only === undefined ? [{ what: 'on its way', of: 'MovingFrom', ...address }] : [];
  const found = [
    ...(await checkLocal(engine, entity, address, snapshot)),
    ...(await checkRemote(engine, entity, address, snapshot)),
  ].filter(({ of }) => only === undefined || of === only);
  if (only !== undefined) return found;
  return [
    ...found,
    ...(await checkCopiedFields(engine, entity, address, snapshot)),
    ...(await checkBlobs(engine, entity, address, snapshot.values)),
  ];
}

/** Copies and lists in its partition, all put right in one transaction that the entity's own ETag guards. */
async function checkLocal(engine: Engine, entity: Entity, address: Address, snapshot: Live): Promise<Suspicion[]> {
  const { values } = snapshot;
  const suspicions: Suspicion[] = [];
  for (const [name, index] of Object.entries(entity.indexes)) {
    if (index.remote || !isIndexed(index, values)) continue;
    const row = buildKey(index.row, values);
    const there = { ...address, row };
    const found = await readAnyList(engine.storage, there);
    const common = { of: name, ...there } as const;
    if (index.kind === 'intra-partition') {
      const properties = copyProperties(entity, values, index.copies);
      if (found && sameCopy(entity, found, properties)) continue;
      if (found && !isOwnedBy(found, address)) {
        suspicions.push({ what: 'taken', ...common });
        continue;
      }
      // Another one's, that came meanwhile, is not overwritten.
      const action: Action = found
        ? { kind: 'replace', row, properties, etag: found.etag }
        : { kind: 'insert', row, properties };
      suspicions.push({
        what: found ? 'wrong' : 'missing',
        ...common,
        repair: () => repairLocal(engine, address, snapshot, action),
      });
    } else {
      const member = buildKey(index.holds, values);
      const action = listAction(found, row, { add: [member], remove: [] });
      if (!action) continue;
      const repair = async () => {
        const stored = await toStoredList(engine.storage, there, action);
        const isMended = await repairLocal(engine, address, snapshot, stored);
        if (isMended) await dropList(engine.storage, found);
        return isMended;
      };
      suspicions.push({ what: 'missing', ...common, repair });
    }
  }
  return suspicions;
}

/** False where the entity, or the list, has changed meanwhile: it will be seen by the next run. */
async function repairLocal(engine: Engine, address: Address, { etag }: Live, action: Action): Promise<boolean> {
  const { table, partition, row } = address;
  const touch: Action = { kind: 'merge', row, properties: { TouchedBy: 'verify' }, etag };
  return (await trySubmit(engine.storage, { table, partition, actions: [touch, action] })) !== undefined;
}

/** Places in other partitions: reconciled as after any change; a row of a unique index is claimed first where it is free. */
async function checkRemote(engine: Engine, entity: Entity, address: Address, snapshot: Live): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  const state = { isSettled: false };
  for (const indexEntry of indexEntriesOf(entity, snapshot.values)) {
    const { index: of, table, partition, row } = indexEntry;
    const found = await readAnyList(engine.storage, indexEntry);
    const repair = () => repairRemote(engine, entity, address, { indexEntry, state });
    const common = { of, table, partition, row } as const;
    if (indexEntry.member !== undefined) {
      if (!membersOf(found).includes(indexEntry.member)) suspicions.push({ what: 'missing', ...common, repair });
      continue;
    }
    if (!found) {
      suspicions.push({ what: 'missing', ...common, repair });
      continue;
    }
    if (hasLiveClaim(found, { intent: workOn(address) }, engine.now())) continue;
    const index = entity.indexes[of];
    if (!isOwnedBy(found, address)) suspicions.push({ what: 'taken', ...common });
    else if (index?.kind === 'inter-partition') {
      const isSame = sameCopy(entity, found, copyProperties(entity, snapshot.values, index.copies));
      const isSettled = !isUnique(index) || found.properties.Confirmed === true;
      if (!isSame || !isSettled) suspicions.push({ what: 'wrong', ...common, repair });
    }
  }
  return suspicions;
}

/** Settling one place settles all of the entity: what that puts right is not done again for the next place. */
async function repairRemote(
  engine: Engine,
  entity: Entity,
  address: Address,
  { indexEntry, state }: { indexEntry: IndexEntry; state: { isSettled: boolean } },
): Promise<boolean> {
  if (isUnique(entity.indexes[indexEntry.index])) {
    const outcome = await claim(engine, indexEntry, address, { intent: workOn(address) });
    if (typeof outcome !== 'object') return false;
    // The claim is not confirmed yet.
    return settle(engine, entity, address, indexEntry);
  }
  if (indexEntry.member !== undefined && !(await emptyLostList(engine.storage, indexEntry))) return false;
  state.isSettled ||= await settle(engine, entity, address, indexEntry);
  return state.isSettled;
}

/**
 * The id of an audit's work on an entity, under which rows of unique indexes are claimed. Every audit has the same one: what one
 * that died has claimed is not in the way of the next, and none of them ever writes the entity.
 */
export function workOn({ partition, row }: Address): string {
  return JSON.stringify(['verify', partition, row]);
}

/**
 * As after a change of the entity: the place is judged by what the entity is then. Answers false where a list that the entity
 * is in is lost, which has to be repaired before.
 */
export async function settle(
  engine: Engine,
  entity: Entity,
  { table, partition, row }: Address,
  indexEntry: IndexEntry,
): Promise<boolean> {
  const intent = workOn({ table, partition, row });
  const items = [{ partition, row, indexEntries: [indexEntry] }];
  try {
    await reconcile(engine, entity, { intent, table, items }, { hold: holdFor(engine, UNHELD_MS) });
    return true;
  } catch (error) {
    if (error instanceof RowkeyError && error.code === 'needs-repair') return false;
    throw error;
  }
}

/** Denormalization: what was copied from others of the partition is what they have. */
async function checkCopiedFields(
  engine: Engine,
  entity: Entity,
  address: Address,
  snapshot: Live,
): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  for (const link of entity.denormalized) {
    const key = referredTo(link, snapshot.values);
    if (!key) continue;
    const row = await readRow(engine.storage, { ...address, row: buildKey(link.source.row, key) });
    const source = toSnapshot(link.source, row?.properties.EntityType === link.source.name ? row : undefined);
    const isMarked = source.state === 'live' && source.system.DenormalizedTo === address.row;
    const after = withCopies(link, snapshot.values, liveValues(source));
    if (isMarked && isDeepStrictEqual(after, snapshot.values)) continue;
    suspicions.push({
      what: 'copied fields',
      of: link.reference.field,
      ...address,
      repair: () => mendFields(engine, entity, { address, before: snapshot, after }),
    });
  }
  return suspicions;
}

async function mendFields(
  engine: Engine,
  entity: Entity,
  change: { address: Address; before: Live; after: Values },
): Promise<boolean> {
  try {
    await commit(engine, entity, [change]);
    return true;
  } catch (error) {
    if (error instanceof EntityChanged) return false;
    throw error;
  }
}

/** A blob that is gone cannot be made again. */
async function checkBlobs({ storage }: Engine, entity: Entity, address: Address, values: Values): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  for (const blob of blobsOf(entity, values))
    if ((await blobLength(storage, blob)) === undefined)
      suspicions.push({ what: 'lost blob', of: blob.container, ...address });
  return suspicions;
}

/**
 * Counts of a partition. The row with the count is read before the entities are counted, and written under that ETag:
 * each hire and leave changes it.
 */
export async function checkCounts(
  engine: Engine,
  entity: Entity,
  { table, partition }: Pick<Row, 'table' | 'partition'>,
): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  for (const { target, field } of entity.countedBy) {
    const counter = target();
    if (counter.row.fields.length > 0) continue;
    const address = { table, partition, row: buildKey(counter.row, {}) };
    const found = await readRow(engine.storage, address);
    const select = ['EntityType', 'SourceRow'];
    const { rows } = await readRange(engine.storage, { table, partition, from: '', type: entity.name, select });
    const counted = rows.filter(({ properties }) => properties.SourceRow === undefined).length;
    const by = counted - Number(found?.properties[field] ?? 0);
    const action = countAction(address.row, found, new Map([[field, by]]));
    if (action)
      suspicions.push({
        what: 'count',
        of: field,
        ...address,
        repair: () => tryAction(engine.storage, address, action),
      });
  }
  return suspicions;
}
