import { isDeepStrictEqual } from 'node:util';
import { hasCode } from '../base/errors.ts';
import { MAX_JSON_DEPTH } from '../base/json-value.ts';
import type { Values } from '../base/values.ts';
import { toSnapshot } from '../define/codec/entity-codec.ts';
import { parseFurtherRowKey } from '../define/codec/further-rows.ts';
import { failedChecks } from '../define/codec/validation.ts';
import { type Entity, formerOf, type VerifySubject } from '../define/declaration/entity.ts';
import { type Suspicion, toFinding } from '../define/declaration/finding.ts';
import type { IndexEntry, Projection } from '../define/declaration/projection.ts';
import {
  addressIfAny,
  CLAIM,
  indexEntriesOf,
  isConfirmed,
  isSibling,
  projectionsOf,
  shapesOf,
} from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { readJoinedRow } from '../engine/read/entity-rows.ts';
import {
  isUpgradable,
  repairEntries,
  repairIntent,
  repairSibling,
  sameCopy,
  settleEntries,
} from '../engine/reconcile/reconcile.ts';
import { claim, hasLiveClaim, isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { blobsOf } from '../engine/write/stored-values.ts';
import { blobLength } from '../storage/blobs.ts';
import { isMarked } from '../storage/row-marks.ts';
import { type Address, type Properties, type Row, readRow, tryAction } from '../storage/rows.ts';
import { checkDerived } from './verify-derived.ts';
import { hasEntry, ownerIn, readOwner } from './verify-index-rows.ts';
import { deepFields, whyInvalid } from './why-invalid.ts';

/** The check of one entity, by the consistency check: its index entries, copies and blobs that are missing or differ from it. */

/** Checks one entity: all of it, or only its entries in one index. `known` is the entity's row, if it was read already. */
export async function checkEntity(
  engine: Engine,
  entity: Entity,
  address: Address,
  { only, known }: { readonly only: string | undefined; readonly known?: Row | undefined },
): Promise<Suspicion[]> {
  const row = known ?? (await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) }));
  const snapshot = toSnapshot(entity, row);
  if (!row || snapshot.state !== 'live') return [];
  // The move or archive that created the row finishes it. If that operation failed, an operator must act.
  const { MovingFrom, Leaving } = snapshot.system;
  if ((MovingFrom || Leaving) && only === undefined)
    return [{ kind: 'unfinished', of: MovingFrom ? 'MovingFrom' : 'Leaving', ...address }];
  // The write of an entity that arrives has written its entries. One that leaves may stay.
  if (MovingFrom) return [];
  // Nothing is repaired: the row would claim unique values and index entries, and a delete would lose data.
  const isElsewhere = (other: Entity) => !isDeepStrictEqual(addressIfAny(other, snapshot.values), address);
  const former = formerOf(entity);
  // A request for its key finds it, and moves it.
  if (former && isElsewhere(entity) && !isElsewhere(former) && (await engine.rekey?.phaseOf(engine, entity.name)))
    return [];
  if (!entity.series && isElsewhere(entity))
    return only === undefined ? [{ kind: 'unreachable', of: entity.name, ...address }] : [];
  // What follows from a wrong value is wrong, too, and what is stored may follow from the right one. A further row that is lost had the
  // fields that are absent now.
  const reason = whyInvalid(entity, row, snapshot.values);
  const invalid = { kind: 'invalid', of: entity.name, reason, ...address } as const;
  if (reason !== undefined && !entity.furtherRows) return [invalid];
  const unreadable = entity.features.flatMap(({ check }) => check?.unreadable?.(entity, snapshot.values) ?? []);
  const found: Suspicion[] = unreadable.map((of) => ({ kind: 'unreadable', of, ...address }));
  if (only === undefined) found.push(...checkDepth(entity, address, snapshot.values));
  for (const feature of entity.features)
    if (only === undefined || Object.hasOwn(shapesOf(entity, [feature]), only))
      found.push(...((await feature.check?.entity?.(engine, entity, { address, snapshot, only })) ?? []));
  // A repair of one entry writes all of them, and a copy may have the last readable form.
  if (unreadable.length > 0 || found.some(({ row: key }) => parseFurtherRowKey(key))) return found;
  if (reason !== undefined) return [...found, invalid];
  const ofEntries = await checkProjections(engine, entity, { address, snapshot, only });
  const corrections = found.flatMap(({ corrects }) => corrects ?? []);
  if (corrections.length > 0 && ofEntries.some(({ kind }) => kind === 'stale')) {
    // An entry of stale copies may have the right ones already: it is stale if it differs from both.
    const values = corrections.reduce((all, correct) => correct(all), snapshot.values);
    const ofCorrected = await checkProjections(engine, entity, { address, snapshot: { ...snapshot, values }, only });
    const isWrong = (one: Suspicion) =>
      ofCorrected.some((other) => isDeepStrictEqual(toFinding(one, false), toFinding(other, false)));
    found.push(...ofEntries.filter((one) => one.kind !== 'stale' || isWrong(one)));
  } else found.push(...ofEntries);
  if (only === undefined) found.push(...(await checkBlobs(engine, entity, address, snapshot.values)));
  if (only === undefined) found.push(...(await checkDerived(engine, entity, { address, snapshot })));
  if (only === undefined) found.push(...checkChecks(entity, address, snapshot.values));
  return found;
}

/** A value that was stored before there was a limit of its depth, or by other means. No write accepts it, and it may be the last one. */
function checkDepth({ name: of }: Entity, address: Address, values: Values): Suspicion[] {
  const field = deepFields(values)[0];
  const reason = `The field "${field}" is nested more than ${MAX_JSON_DEPTH} levels deep.`;
  return field === undefined ? [] : [{ kind: 'invalid', of, reason, ...address }];
}

/** A check may be newer than the entity. Nobody else knows the right values, so nothing is repaired. A function that throws has a mistake. */
function checkChecks(entity: Entity, address: Address, values: Values): Suspicion[] {
  const toSuspicion = (reason: string): Suspicion => ({ kind: 'failed-check', of: entity.name, reason, ...address });
  try {
    return failedChecks(entity, values).map((message) => toSuspicion(`The entity is not valid: ${message}.`));
  } catch (error) {
    if (!hasCode(error, 'wrong-operation')) throw error;
    return [toSuspicion(error.message)];
  }
}

/** Compares each row that follows from the entity with the stored one. */
async function checkProjections(engine: Engine, entity: Entity, subject: VerifySubject): Promise<Suspicion[]> {
  const { snapshot, only } = subject;
  const state = { entries: indexEntriesOf(entity, snapshot.values), isSettled: false };
  const suspicions: Suspicion[] = [];
  for (const projection of projectionsOf(entity).filter(({ name }) => only === undefined || only === name))
    for (const indexEntry of projection.rows(snapshot.values)) {
      const checked = { projection, indexEntry, state, isBuild: only !== undefined };
      const suspicion = await checkEntry(engine, entity, subject, checked);
      if (suspicion) suspicions.push(suspicion);
    }
  return suspicions;
}

interface CheckedEntry {
  readonly projection: Projection;
  readonly indexEntry: IndexEntry;
  readonly state: { readonly entries: readonly IndexEntry[]; isSettled: boolean };
  readonly isBuild: boolean;
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
      : repairRemote(engine, entity, address, { ...checked, found });
  // A lost list is one finding for all its members.
  const sum = found && merge?.list?.isLost(found) ? { table, partition, row } : merge?.sumOf?.(checked.indexEntry);
  const common = { of, table, partition, row, member, sum } as const;
  // Nothing that another program wrote is replaced.
  if (found && !isMarked(found.properties)) return { kind: 'conflict', ...common };
  const isHeld = merge?.holds(found, { member, properties });
  if (merge?.list)
    return isHeld
      ? undefined
      : { kind: 'missing', ...common, repair, losesValues: found !== undefined && merge.list.isLost(found) };
  if (!found) return { kind: 'missing', ...common, repair };
  if (hasLiveClaim(found, { intent: repairIntent(address) }, engine)) return undefined;
  if (!isOwnedBy(found, address)) {
    const repairStolen = async () => (await releaseStolen(engine, entity, checked, found)) && repair();
    const isStolen = settle === 'claim' && !(await isEntryOfOwner(engine, entity, found, checked));
    return isStolen ? { kind: 'stale', ...common, repair: repairStolen } : { kind: 'conflict', ...common };
  }
  if (!properties) return undefined;
  const isSettled = settle !== 'claim' || isConfirmed(found);
  const isCurrent =
    isHeld ??
    (sameCopy(entity, found, properties) ||
      // A build of the index writes copies of earlier versions again.
      (only === undefined && isUpgradable(entity, found, { expected: properties, isPartial })));
  return isCurrent && isSettled ? undefined : { kind: 'stale', ...common, repair };
}

/** True if the entity that the row of a unique index names has its value, or if that entity cannot be read. */
async function isEntryOfOwner(
  engine: Engine,
  entity: Entity,
  found: Row,
  { projection, indexEntry }: CheckedEntry,
): Promise<boolean> {
  const values = await readOwner(engine, entity, ownerIn(entity, found));
  return values === 'unreadable' || (values !== undefined && hasEntry(projection, projection.rows(values), indexEntry));
}

/** Deletes the row of a unique index that names an entity without its value. False if the row, or that entity, has changed. */
async function releaseStolen(
  engine: Engine,
  entity: Entity,
  { indexEntry }: CheckedEntry,
  found: Row,
): Promise<boolean> {
  const owner = ownerIn(entity, found);
  await repairEntries(engine, entity, owner, indexEntry);
  const row = await readRow(engine.storage, indexEntry);
  return !row || !isOwnedBy(row, owner);
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
    await list.write(engine.storage, indexEntry, { action, former: found }),
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
  {
    projection: { settle, merge },
    indexEntry,
    state,
    isBuild,
    found,
  }: CheckedEntry & { readonly found: Row | undefined },
): Promise<boolean> {
  if (settle === 'claim') {
    // The reconciler leaves a row of another type as it is.
    if (found && ![entity.name, CLAIM].includes(String(found.properties.EntityType))) {
      const { row, etag } = found;
      const action = { kind: 'merge', row, properties: { EntityType: CLAIM }, etag } as const;
      if (!(await tryAction(engine.storage, indexEntry, action))) return false;
    }
    const outcome = await claim(engine, indexEntry, address, { intent: repairIntent(address) });
    if (typeof outcome !== 'object') return false;
    // The reconciler confirms the claim.
    return repairEntries(engine, entity, address, indexEntry);
  }
  if (merge?.list && !(await merge.list.restore(engine.storage, indexEntry))) return false;
  state.isSettled ||= await settleEntries(engine, entity, address, {
    indexEntries: state.entries,
    isRepair: !isBuild,
  });
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
