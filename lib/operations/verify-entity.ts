import { isDeepStrictEqual } from 'node:util';
import type { Values } from '../base/values.ts';
import { toSnapshot } from '../define/codec/entity-codec.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import type { IndexEntry } from '../define/declaration/remote-index.ts';
import type { Live } from '../define/declaration/snapshot.ts';
import { addressIfAny, indexEntriesOf, isContested, remoteIndexOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { readJoinedRow } from '../engine/read/entity-rows.ts';
import { isUpgradable, sameCopy } from '../engine/reconcile/reconcile.ts';
import { repairEntries, repairIntent } from '../engine/reconcile/repair.ts';
import { claim, hasLiveClaim, isConfirmed, isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { siblingFormOf } from '../engine/write/siblings.ts';
import { blobsOf } from '../engine/write/stored-values.ts';
import { isLostList } from '../pattern-helpers/member-list.ts';
import { blobLength } from '../storage/blobs.ts';
import { type Address, readRow } from '../storage/rows.ts';

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
  found.push(...(await checkRemote(engine, entity, { address, snapshot, only })));
  if (only === undefined) found.push(...(await checkBlobs(engine, entity, address, snapshot.values)));
  return found;
}

async function checkRemote(
  engine: Engine,
  entity: Entity,
  { address, snapshot, only }: { address: Address; snapshot: Live; only: string | undefined },
): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  const entries = indexEntriesOf(entity, snapshot.values);
  const state = { entries, isSettled: false };
  for (const indexEntry of entries.filter(({ index }) => only === undefined || index === only)) {
    const { index: of, table, partition, row, member } = indexEntry;
    const form = siblingFormOf(entity);
    const found = await (form ? form.readAny(engine.storage, indexEntry) : readRow(engine.storage, indexEntry));
    const repair = () => repairRemote(engine, entity, address, { indexEntry, state });
    const common = { of, table, partition, row } as const;
    const remote = remoteIndexOf(entity, indexEntry);
    if (remote?.list && member !== undefined) {
      if (!remote.list.holds(found, member)) {
        const losesValues = found !== undefined && isLostList(found);
        suspicions.push({ kind: 'missing', ...common, repair, losesValues });
      }
      continue;
    }
    if (!found) {
      suspicions.push({ kind: 'missing', ...common, repair });
      continue;
    }
    if (hasLiveClaim(found, { intent: repairIntent(address) }, engine)) continue;
    const properties = remote?.properties?.(snapshot.values);
    if (!isOwnedBy(found, address)) suspicions.push({ kind: 'conflict', ...common });
    else if (remote && properties) {
      const isSettled = !remote.isContested || isConfirmed(found);
      const { shared, isPartial } = remote;
      const isCurrent =
        (shared?.isCurrent(found, properties) ?? sameCopy(entity, found, properties)) ||
        // A build of the index writes copies of earlier versions again.
        (!shared && only === undefined && isUpgradable(entity, found, { expected: properties, isPartial }));
      if (!isCurrent || !isSettled) suspicions.push({ kind: 'stale', ...common, repair });
    }
  }
  return suspicions;
}

/**
 * Reconciles the entries as after any change; the missing row of a unique index is claimed first. One call repairs all entries of the
 * entity, and `state` avoids a second one for the next entry.
 */
async function repairRemote(
  engine: Engine,
  entity: Entity,
  address: Address,
  {
    indexEntry,
    state,
  }: { indexEntry: IndexEntry; state: { readonly entries: readonly IndexEntry[]; isSettled: boolean } },
): Promise<boolean> {
  if (isContested(entity, indexEntry)) {
    const outcome = await claim(engine, indexEntry, address, { intent: repairIntent(address) });
    if (typeof outcome !== 'object') return false;
    // The reconciler confirms the claim.
    return repairEntries(engine, entity, address, indexEntry);
  }
  const list = remoteIndexOf(entity, indexEntry)?.list;
  if (list && !(await list.restore(engine.storage, indexEntry))) return false;
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
