import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { busy, hasCode, RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { pick, type Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import type { CarriedRows, Live, Snapshot } from '../../define/declaration/change.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { type Address, deleteSame, tryAction } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { journalNamed } from '../journal-named.ts';
import { type EntityRowOptions, readJoinedRow, readLive, requireRekeyed } from '../read/entity-rows.ts';
import type { Transfer } from '../reconcile/intent.ts';
import { tryCommit } from '../write/eventual-transaction.ts';
import { PlanTooLarge, TooManyCarried } from '../write/plan.ts';
import { isAllowed, RULED_OUT, ruledOut } from '../write/recorded-rules.ts';
import { toPlaced } from '../write/stored-values.ts';
import { checkCarried, fieldsMoved } from './carried-children.ts';
import { handBack, handOver, type Work } from './hand-over.ts';
import { deleteChildren, mark, putChildren } from './many-children.ts';

/** The move of one entity between two rows, as transfer.ts describes it. */

export const GONE = 'The entity was deleted, or its key changed, before the operation ran.';
const TAKEN = 'Another entity has this key at the destination.';
const REKEYED = 'The entity has changed since the request, and would get another key.';
/** Why an operation is undone, if it cannot be finished any more. */
export const INTERRUPTED = 'The key of the entity is being changed.';
/** Reasons why the entity cannot leave, or why it or its children can never be written at the destination. */
const REFUSALS = [
  'duplicate-value',
  'referenced',
  'partition-full',
  'too-large',
  'invalid-input',
  'forbidden',
] as const;

/** The operation that gives an incarnation another key, and its incarnation then. */
export function rekeyOf(incarnation: string): string {
  return hash('sha256', incarnation).slice(0, 32);
}

/** True for an incarnation, and for what it is after it has got another key. */
function isOfLife({ system }: Live, incarnation: string): boolean {
  return system.Incarnation === incarnation || system.Incarnation === rekeyOf(incarnation);
}

/**
 * Continues from any state of the two rows. Returns why the transfer cannot be done, or undefined once it is done. With `refused`, a
 * transfer that has not reached the point of no return is undone.
 */
export async function transferEntity(work: Work, refused?: string): Promise<string | undefined> {
  const { engine, entity, destination, transfer, from, to, hold, rules } = work;
  const { operationId } = transfer;
  const arrival = { incarnation: operationId, movingFrom: JSON.stringify([from.partition, from.row]), moves: [] };
  const isSameKind = destination.name === entity.name;
  const isOtherKey = isRekey(work);
  const under = (other: NonNullable<EntityChange['other']>) => (isOtherKey ? { other } : {});
  const there = { entity: destination, address: to, arrival, isRekey: isOtherKey };
  const leave = (before: Live) => ({
    ...departure(entity, transfer, from, before),
    ...under({ entity: destination, values: after }),
    isRekey: isOtherKey,
  });
  const leavingFamily = { engine, entity, address: from, operationId, hold };
  const arrivingFamily = { engine, entity: destination, address: to, operationId, hold };
  const dropDestination = async (before: Live, source?: Live) => {
    // Only a source that is still there needs what it has under both keys.
    const kept = source ? under({ entity, values: source.values }) : {};
    const change = { ...there, ...kept, before, after: undefined };
    try {
      return await tryCommit(engine, [change]);
    } catch (error) {
      if (!(error instanceof PlanTooLarge)) throw error;
      const etag = await deleteChildren(arrivingFamily, before.etag);
      return etag === undefined ? undefined : tryCommit(engine, [{ ...change, before: { ...before, etag } }]);
    }
  };
  let copiedFrom = '';
  let leftAt = '';
  let after: Values = {};
  for (;;) {
    await hold.keep();
    // In this order: if the source still exists, no duplicate of this message has opened the destination before.
    const reached = await readDestination(work);
    const [source, lost] = await readSource(work);
    if (source.state === 'tombstone' && source.movedTo === transfer.operationId) {
      // Another process may have moved the entity to its key, whose copy here is then too late: its source is no tombstone any more.
      if (!isRekey(work)) await openDestination(work);
      else if (!reached.ours && leftAt !== source.etag) {
        // The entity may have arrived, and left here, between the two reads.
        leftAt = source.etag;
        continue;
      } else if (reached.ours?.system.MovingFrom && !(await open(engine, to, reached.ours))) continue;
      const { operationId: movedTo } = transfer;
      await deleteSame(
        engine.storage,
        { ...from, etag: source.etag },
        ({ properties }) => properties.MovedTo === movedTo,
      );
      return undefined;
    }
    if (source.state !== 'live' || !isOfLife(source, transfer.incarnation)) {
      // In this order: a source that a duplicate has deleted had been written to the destination before.
      const { ours } = await readDestination(work);
      if (ours && !ours.system.MovingFrom) {
        // The process that deleted the tombstone may have died before the journal had that, or that the destination is open.
        await journalNamed(engine, [from, to]);
        return undefined;
      }
      if (!ours || (await dropDestination(ours))) return GONE;
      continue;
    }
    const { arrived, ours } = reached;
    const { MovingFrom, Leaving, Left } = source.system;
    if (MovingFrom) throw busy('The entity is being moved to this partition.');
    if (Leaving && Leaving !== operationId) throw busy('Another operation deletes, archives or moves the entity.');
    // First of all: no other reason may say that there is such an entity.
    if (!Left && !isAllowed(rules, source.values)) refused ??= RULED_OUT;
    if (arrived.state === 'live' && !ours) refused ??= TAKEN;
    if (!Left) refused ??= lost;
    if (refused !== undefined) {
      if (!ours && (!Leaving || (await mark(leavingFamily, source, { Leaving: '' })))) return refused;
      if (!ours) continue;
      if (isSameKind) await handBack(work, source.values, ours.system.Incarnation);
      await dropDestination(ours, source);
      continue;
    }
    try {
      if (Left) {
        const etag = await deleteChildren(leavingFamily, source.etag);
        const rest = etag && { ...leave({ ...source, etag }), leaving: operationId };
        if (rest) await tryCommit(engine, [rest]);
        continue;
      }
      // A move in the other direction has brought the entity from there, and was not finished.
      if (isRekey(work) && arrived.state === 'tombstone' && arrived.movedTo === source.system.Incarnation) {
        await tryAction(engine.storage, to, { kind: 'delete', row: to.row, etag: arrived.etag });
        continue;
      }
      // The source's ETag covers its children too: each write of a child touches the source.
      if (copiedFrom !== source.etag) {
        // An archive may be declared without some fields.
        const kept = pick(source.values, Object.keys(destination.columns));
        const placed = await toPlaced(engine, entity, kept, { entity: destination, to: transfer.to });
        if (!isAllowed(rules, source.values, placed)) throw ruledOut();
        // A derived field of the key may follow from fields that have changed since the request.
        if (transfer.to && !isDeepStrictEqual(addressOf(destination, placed), to))
          throw new RowkeyError('invalid-input', REKEYED);
        const moves = fieldsMoved(entity, transfer.to, { before: source.values, after: placed });
        const rows = await readCarriedRows(work);
        // A duplicate may have deleted some of them.
        if (Leaving && !isSame((await readSource(work))[0], source)) continue;
        const change = {
          ...there,
          ...under({ entity, values: source.values }),
          arrival: { ...arrival, moves },
          before: arrived,
          after: placed,
        };
        if (transfer.to) await checkCarried(engine, { entity, from, arrival: change, to: transfer.to, rules }, rows);
        const [committed] = (await tryCommit(engine, [Leaving ? change : { ...change, carried: rows }])) ?? [];
        if (!committed) continue;
        if (Leaving && (await putChildren(arrivingFamily, committed.etag, rows)) === undefined) continue;
        // With the fields that patterns have set from the rows at the destination.
        after = committed.values;
        copiedFrom = source.etag;
      }
      const kinds = { giver: entity, taker: destination };
      const life = { ...kinds, from, incarnation: source.system.Incarnation, to, etag: source.etag };
      if (isSameKind && !(await handOver(work, after, life))) continue;
      // If another writer was faster, both rows are read again.
      if (!Leaving) await tryCommit(engine, [leave(source)]);
      else {
        await checkDeparture(work, source);
        await mark(leavingFamily, source, { Left: operationId });
      }
    } catch (error) {
      if (error instanceof TooManyCarried) {
        await mark(leavingFamily, source, { Leaving: operationId });
        continue;
      }
      // Another writer has just inserted this key, perhaps a duplicate of this message.
      if (hasCode(error, 'duplicate-key')) continue;
      if (!hasCode(error, ...REFUSALS)) throw error;
      refused = error.message;
    }
  }
}

/** True if the entity only gets another key: one of the two declarations is that of the former key. */
function isRekey({ entity, destination }: Pick<Work, 'entity' | 'destination'>): boolean {
  return destination !== entity && destination.name === entity.name;
}

/** The change that turns the source into a tombstone. */
export function departure(
  entity: Entity,
  { operation, operationId }: Transfer,
  address: Address,
  before: Snapshot,
): EntityChange {
  return { entity, address, before, after: undefined, movedTo: operationId, isMove: operation === 'move' };
}

/** Throws `referenced`. Nothing new refers to an entity that is closed. */
async function checkDeparture({ engine, entity, transfer, from }: Work, source: Live): Promise<void> {
  const change = departure(entity, transfer, from, source);
  for (const { write } of entity.features) await write?.checkRelated?.(engine, entity, [change], []);
}

/** Reads the rows that move with the entity. */
async function readCarriedRows({ engine, entity, destination, transfer, from, to }: Work): Promise<CarriedRows> {
  const put: CarriedRows['put'][number][] = [];
  const drop: string[] = [];
  for (const { write } of entity.features) {
    const there = { entity: destination, address: to, to: transfer.to };
    const carried = await write?.carried?.move(engine, entity, from, there);
    put.push(...(carried?.put ?? []));
    drop.push(...(carried?.drop ?? []));
  }
  return { put, drop };
}

/** Reads the destination and whether this operation has written it. */
export async function readDestination({ engine, destination, transfer, to }: Work) {
  const arrived = await readSnapshot(engine, destination, to);
  const ours = arrived.state === 'live' && isOfLife(arrived, transfer.operationId) ? arrived : undefined;
  return { arrived, ours };
}

/** Reads the source, and why it cannot be transferred if a further row is lost: a copy would no longer show the loss. */
async function readSource({ engine, entity, from }: Work): Promise<[Snapshot, string | undefined]> {
  try {
    return [await readSnapshot(engine, entity, from, { isWhole: true }), undefined];
  } catch (error) {
    if (!hasCode(error, 'needs-repair')) throw error;
    return [await readSnapshot(engine, entity, from), error.message];
  }
}

/** Reads the whole entity of a row. */
export async function readSnapshot(
  engine: Engine,
  entity: Entity,
  address: Address,
  { isWhole }: Pick<EntityRowOptions, 'isWhole'> = {},
): Promise<Snapshot> {
  const row = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns), isWhole });
  // An entity that has left its former key was not deleted.
  if (!entity.formerKey) await requireRekeyed(engine, entity);
  return toSnapshot(entity, row);
}

/** Opens the destination: from here on it is an ordinary entity. */
export async function openDestination({ engine, destination, transfer, to }: Work): Promise<void> {
  for (;;) {
    const found = await readLive(engine, destination, to);
    // The entity may have moved on since, and another transfer may be arriving there.
    if (!found || !isOfLife(found, transfer.operationId)) return;
    if (!found.system.MovingFrom) return journalNamed(engine, [to]);
    if (await open(engine, to, found)) return;
  }
}

function open({ storage }: Engine, to: Address, { etag }: Live): Promise<boolean> {
  return tryAction(storage, to, { kind: 'merge', row: to.row, properties: { MovingFrom: '' }, etag });
}
