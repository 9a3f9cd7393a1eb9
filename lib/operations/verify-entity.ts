import { isDeepStrictEqual } from 'node:util';
import type { Values } from '../base/values.ts';
import { toSnapshot } from '../define/codec/entity-codec.ts';
import type { Entity, VerifySubject } from '../define/declaration/entity.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import type { IndexEntry, Projection } from '../define/declaration/projection.ts';
import { addressIfAny, indexEntriesOf, isConfirmed, isSibling, projectionsOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { readJoinedRow } from '../engine/read/entity-rows.ts';
import { isUpgradable, sameCopy } from '../engine/reconcile/reconcile.ts';
import { repairEntries, repairIntent, repairSibling } from '../engine/reconcile/repair.ts';
import { claim, hasLiveClaim, isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { blobsOf } from '../engine/write/stored-values.ts';
import { blobLength } from '../storage/blobs.ts';
import { type Address, type Properties, type Row, readRow } from '../storage/rows.ts';

/** Finds index entries, copies and blobs of an entity that are missing or differ from it. */

/** Checks one entity: all of it, or only its entries in one index. */
export async function checkEntity(
  engine: Engine,
  entity: Entity,
  address: Address,
  only: string | undefined,
): Promise<Suspicion[]> {
  const snapshot = toSnapshot(
    entity,
    await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) }),
  );
  if (snapshot.state !== 'live') return [];
  // The move or archive that created the row finishes it. If that operation failed, an operator must act.
  if (snapshot.system.MovingFrom)
    return only === undefined ? [{ kind: 'unfinished', of: 'MovingFrom', ...address }] : [];
  // Nothing is repaired: the row would claim unique values and index entries, and a delete would lose data.
  if (!entity.series && !isDeepStrictEqual(addressIfAny(entity, snapshot.values), address))
    return only === undefined ? [{ kind: 'unreachable', of: entity.name, ...address }] : [];
  const found: Suspicion[] = [];
  for (const { check } of entity.features)
    found.push(...((await check?.entity?.(engine, entity, { address, snapshot, only })) ?? []));
  found.push(...(await checkProjections(engine, entity, { address, snapshot, only })));
  if (only === undefined) found.push(...(await checkBlobs(engine, entity, address, snapshot.values)));
  return found;
}

/** Compares each row that follows from the entity with the stored one. */
async function checkProjections(engine: Engine, entity: Entity, subject: VerifySubject): Promise<Suspicion[]> {
  const { snapshot, only } = subject;
  const state = { entries: indexEntriesOf(entity, snapshot.values), isSettled: false };
  const suspicions: Suspicion[] = [];
  for (const projection of projectionsOf(entity).filter(({ name }) => only === undefined || only === name))
    for (const indexEntry of projection.rows(snapshot.values)) {
      const suspicion = await checkEntry(engine, entity, subject, { projection, indexEntry, state });
      if (suspicion) suspicions.push(suspicion);
    }
  return suspicions;
}

interface CheckedEntry {
  readonly projection: Projection;
  readonly indexEntry: IndexEntry;
  readonly state: { readonly entries: readonly IndexEntry[]; isSettled: boolean };
}

async function checkEntry(
  engine: Engine,
  entity: Entity,
  subject: VerifySubject,
  checked: CheckedEntry,
): Promise<Suspicion | undefined> {
  const { address, snapshot, only } = subject;
  const { settle, merge, isPartial, ...projection } = checked.projection;
  const { index: of, table, partition, row, member } = checked.indexEntry;
  const found = await (merge?.list?.readAny ?? readRow)(engine.storage, checked.indexEntry);
  const properties = projection.properties?.(snapshot.values);
  const repair = () =>
    isSibling(checked.projection)
      ? repairInPartition(engine, subject, { ...checked, found, properties })
      : repairRemote(engine, entity, address, checked);
  const common = { of, table, partition, row } as const;
  const isHeld = merge?.holds(found, { member, properties });
  if (merge?.list)
    return isHeld
      ? undefined
      : { kind: 'missing', ...common, repair, losesValues: found !== undefined && merge.list.isLost(found) };
  if (!found) return { kind: 'missing', ...common, repair };
  if (hasLiveClaim(found, { intent: repairIntent(address) }, engine)) return undefined;
  if (!isOwnedBy(found, address)) return { kind: 'conflict', ...common };
  if (!properties) return undefined;
  const isSettled = settle !== 'claim' || isConfirmed(found);
  const isCurrent =
    isHeld ??
    (sameCopy(entity, found, properties) ||
      // A build of the index writes copies of earlier versions again.
      (only === undefined && isUpgradable(entity, found, { expected: properties, isPartial })));
  return isCurrent && isSettled ? undefined : { kind: 'stale', ...common, repair };
}

/** Writes a row under its ETag and that of the entity. A copy of another entity that came meanwhile is not overwritten. */
async function repairInPartition(
  engine: Engine,
  { address, snapshot }: VerifySubject,
  {
    projection: { merge },
    indexEntry,
    found,
    properties = {},
  }: CheckedEntry & { readonly found: Row | undefined; readonly properties: Properties | undefined },
): Promise<boolean> {
  const { row, member = '' } = indexEntry;
  const list = merge?.list;
  if (!list) {
    const action = found
      ? ({ kind: 'replace', row, properties, etag: found.etag } as const)
      : ({ kind: 'insert', row, properties } as const);
    return repairSibling(engine, address, snapshot, action);
  }
  const action = list.change(found, row, { add: [member], remove: [] });
  if (!action) return true;
  const isRepaired = await repairSibling(
    engine,
    address,
    snapshot,
    await list.write(engine.storage, indexEntry, action),
  );
  if (isRepaired && found) await list.drop(engine.storage, found);
  return isRepaired;
}

/**
 * Reconciles the entries as after any change; the missing row of a unique index is claimed first. One call repairs all entries of the
 * entity, and `state` avoids a second one for the next entry.
 */
async function repairRemote(
  engine: Engine,
  entity: Entity,
  address: Address,
  { projection: { settle, merge }, indexEntry, state }: CheckedEntry,
): Promise<boolean> {
  if (settle === 'claim') {
    const outcome = await claim(engine, indexEntry, address, { intent: repairIntent(address) });
    if (typeof outcome !== 'object') return false;
    // The reconciler confirms the claim.
    return repairEntries(engine, entity, address, indexEntry);
  }
  if (merge?.list && !(await merge.list.restore(engine.storage, indexEntry))) return false;
  state.isSettled ||= await repairEntries(engine, entity, address, ...state.entries);
  return state.isSettled;
}

/** A missing blob cannot be restored, so the finding has no repair. */
async function checkBlobs({ storage }: Engine, entity: Entity, address: Address, values: Values): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  for (const blob of blobsOf(entity, values))
    if ((await blobLength(storage, blob)) === undefined)
      suspicions.push({ kind: 'lost-blob', of: blob.container, ...address });
  return suspicions;
}
