import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { busy, hasCode, NeverSucceeds, RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { maskOf, parse } from '../../define/codec/validation.ts';
import type { CarriedRows, Change, Live, Snapshot } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import { type Entity, type EntityChange, formerOf } from '../../define/declaration/entity.ts';
import { hasExpired } from '../../define/declaration/expiry.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { type Address, deleteSame, tryAction } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import {
  declarationOf,
  type EntityRowOptions,
  notFound,
  readJoinedRow,
  readLive,
  requireRekeyed,
  requireWritable,
} from '../read/entity-rows.ts';
import { holdFor } from '../reconcile/hold.ts';
import { MESSAGE_VERSION, type Transfer } from '../reconcile/intent.ts';
import { tryCommit } from '../write/eventual-transaction.ts';
import { findOperation, newOperationId, type Operation, sendTransfer, writeOperation } from '../write/operation.ts';
import { TooManyCarried } from '../write/plan.ts';
import { toPlaced } from '../write/stored-values.ts';
import { handBack, handOver, type Work } from './hand-over.ts';
import { deleteLarge, openAgain } from './large-delete.ts';
import { deleteFirstChildren, mark, putChildren } from './many-children.ts';

/**
 * Archive and move: an eventual transaction between two entities.
 *
 *   request    read the source -> record the operation -> send the message: 202
 *   consumer   insert or replace at the destination, closed to writers
 *              -> a move: hand over the rows of unique indexes
 *              -> if the source is unchanged, turn it into a tombstone that names the operation; else start over
 *              -> open the destination -> delete the tombstone
 *   rejected   a move hands the rows back -> delete the destination: the source is as before
 *
 * The entity always exists in at least one of the two places. The tombstone is the point of no return: a source that
 * disappeared without one was deleted by a caller, and then the destination is deleted too, because an acknowledged
 * deletion must last. A message names one incarnation of the entity, and the entity gets another at the destination, so a
 * duplicate or late message finds nothing to do.
 *
 * An entity with more children than a transaction has rows is closed first (`Leaving`), as for its delete (large-delete.ts). Then the children
 * are copied in several transactions, which require the ETag of the destination. `Left` is the point of no return, before the
 * first child is deleted at the source. Nothing can be rejected after it.
 *
 * While entities are moved to another key (operations/rekey.ts), an operation that has begun at the former keys is finished or undone there,
 * and begins at the new keys once its entities are there. test/model/rekey-moves.ts is the specification.
 */

/**
 * Requests that an entity be archived and returns the id of the operation. A given `id` determines that id, so a request
 * that is repeated on the same day is executed once. Throws `not-found`, `referenced`.
 */
export async function requestArchive(engine: Engine, entity: Entity, key: Values, id?: string): Promise<string> {
  return requestTransfer(engine, entity, { operation: 'archive', key }, id);
}

/** Requests a move; `input` has new values of movable fields. Throws `not-found`, `invalid-input`, `referenced`. */
export async function requestMove(
  engine: Engine,
  entity: Entity,
  key: Values,
  input: unknown,
  id?: string,
): Promise<string> {
  const to = parse(moveSchema(entity), input);
  const address = addressOf(entity, { ...key, ...to });
  if (isDeepStrictEqual(address, addressOf(entity, key)))
    throw new RowkeyError(
      'invalid-input',
      `A move must change ${entity.movable.map((field) => `"${field}"`).join(' or ')}.`,
      {
        field: entity.movable[0] ?? '',
        accepted: 'a value other than the current one',
      },
    );
  return requestTransfer(engine, entity, { operation: 'move', key, to }, id);
}

/** Returns the schema of the body of a move. */
export function moveSchema(entity: Entity): z.ZodObject {
  return entity.schema.pick(maskOf(entity.movable)).required().strict();
}

async function requestTransfer(
  engine: Engine,
  declared: Entity,
  asked: Pick<Transfer, 'operation' | 'key' | 'to'>,
  id?: string,
): Promise<string> {
  const entity = await declarationOf(engine, declared);
  const operationId = newOperationId(engine.now(), id);
  const named = { operation: asked.operation, operationId, entity: entity.name };
  const earlier = id === undefined ? undefined : await findOperation(engine, named);
  if (earlier && earlier.status !== 'running') return operationId;
  const address = addressOf(entity, asked.key);
  const fields = Object.keys(entity.columns);
  const source = await readLive(engine, entity, address, { fields, isWhole: true });
  await requireWritable(engine, entity);
  // A running operation may be in progress. If its process died before sending the message, the message is sent now.
  if (!source && earlier) return operationId;
  if (!source || hasExpired(entity, source.values, engine.now())) throw notFound(entity, asked.key);
  checkAllowed(engine, entity, asked, source.values);
  const transfer: Transfer = {
    version: MESSAGE_VERSION,
    ...asked,
    operationId,
    entity: entity.name,
    incarnation: source.system.Incarnation,
  };
  const leaving = departure(entity, transfer, address, source);
  for (const { write } of entity.features)
    await write?.checkRelated?.(engine, entity, [leaving, ...arrivalOf(entity, transfer, source)], []);
  await recordStatus(engine, transfer, 'running');
  const { operation, to = {} } = asked;
  const change = { operation, entity: entity.name, address, fields: Object.keys(to), etag: source.etag };
  await sendTransfer(engine, transfer, change);
  return operationId;
}

/** An archive takes the entity away, and a move changes it. Throws `not-found`, `forbidden`. */
function checkAllowed(
  { guard }: Engine,
  entity: Entity,
  { operation, key, to }: Pick<Transfer, 'operation' | 'key' | 'to'>,
  before: Values,
): void {
  guard?.checkBefore(entity.name, key, operation === 'move' ? 'update' : 'delete', before);
  if (operation === 'move') guard?.checkAfter(entity.name, 'update', { ...before, ...to }, before);
}

/** Executes a message of the queue `transfers`, which may be a duplicate or late. Throws to be retried. */
export const runTransfer = inPattern(
  'archive or move',
  async (
    engine: Engine,
    declared: Entity,
    transfer: Transfer,
    { hold }: { readonly hold: Hold } = { hold: holdFor(engine) },
  ): Promise<void> => {
    const entity = await declarationOf(engine, declared);
    await requireWritable(engine, entity);
    const isDelete = transfer.operation === 'delete';
    const destination = transfer.operation === 'archive' ? entity.archive : entity;
    if (!destination) throw new NeverSucceeds(`"${entity.name}" has no archive.`);
    const recorded = await findRecord(engine, transfer);
    if (!recorded)
      throw new NeverSucceeds(
        'Operation not found: the message does not match a recorded operation, or the operation ended too long ago.',
      );
    if (recorded.status === 'succeeded') return;
    const from = addressOf(entity, transfer.key);
    const to = addressOf(destination, { ...transfer.key, ...transfer.to });
    const work = { engine, entity, destination, transfer, from, to, hold };
    const isRekeyed = entity.formerKey && (await engine.rekey?.phaseOf(engine, entity.name)) === 'moving';
    const isDone = isRekeyed && (await leaveFormerKeys(work));
    const reason = await (isDelete
      ? deleteLarge(engine, entity, transfer, hold)
      : isDone
        ? undefined
        : transferEntity(work));
    if (reason === undefined) await recordStatus(engine, transfer, 'succeeded');
    else await failTransfer(engine, transfer, reason);
  },
);

/** Ends an operation whose message is recorded as poison, unless a duplicate has succeeded or no such operation is recorded. */
export async function giveUpTransfer(
  engine: Engine,
  entity: Entity,
  transfer: Transfer,
  reason: string,
): Promise<void> {
  const recorded = await findRecord(engine, transfer);
  if (!recorded || recorded.status === 'succeeded') return;
  await openAgain(engine, entity, transfer);
  await recordStatus(engine, transfer, 'failed', reason);
}

async function failTransfer(engine: Engine, transfer: Transfer, reason: string): Promise<void> {
  const recorded = await findRecord(engine, transfer);
  if (recorded && recorded.status !== 'succeeded') await recordStatus(engine, transfer, 'failed', reason);
}

/**
 * Returns the operation as recorded at the time of the request, when its key and new values were checked. Undefined if the
 * message differs from the record: anyone who can write to the queue can name any key.
 */
async function findRecord(engine: Engine, transfer: Transfer): Promise<Values | undefined> {
  const recorded = await findOperation(engine, transfer);
  const isSame = isDeepStrictEqual([recorded?.key, recorded?.to], [transfer.key, transfer.to]);
  return isSame ? recorded : undefined;
}

export const GONE = 'The entity was deleted, or its key changed, before the operation ran.';
const TAKEN = 'Another entity has this key at the destination.';
/** Why an operation is undone, if it cannot be finished any more. */
export const INTERRUPTED = 'The key of the entity is being changed.';
/** Reasons why the entity cannot leave, or why it or its children can never be written at the destination. */
const REFUSALS = ['duplicate-value', 'referenced', 'partition-full', 'too-large', 'invalid-input'] as const;

/**
 * Ends what an operation has begun at the former keys, which its entities then leave. Returns true if it has been done there. Nobody begins
 * anything at these keys any more.
 */
async function leaveFormerKeys(work: Work): Promise<boolean> {
  const { transfer } = work;
  const { rekey, ...engine } = work.engine;
  const [entity, destination] = [formerOf(work.entity), formerOf(work.destination)];
  if (!rekey || !entity || !destination) return false;
  const [from, to] = [addressOf(entity, transfer.key), addressOf(destination, { ...transfer.key, ...transfer.to })];
  if ((await transferEntity({ ...work, engine, entity, destination, from, to }, INTERRUPTED)) === undefined)
    return true;
  await rekey.find(work.engine, work.entity.name, work.from);
  await rekey.find(work.engine, work.destination.name, work.to);
  return false;
}

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
  const { engine, entity, destination, transfer, from, to, hold } = work;
  const { operationId } = transfer;
  const arrival = { incarnation: operationId, movingFrom: JSON.stringify([from.partition, from.row]) };
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
      if (!(error instanceof TooManyCarried)) throw error;
      const etag = await deleteFirstChildren(arrivingFamily, before.etag);
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
      if (ours && !ours.system.MovingFrom) return undefined;
      if (!ours || (await dropDestination(ours))) return GONE;
      continue;
    }
    const { arrived, ours } = reached;
    const { MovingFrom, Leaving, Left } = source.system;
    if (MovingFrom) throw busy('The entity is being moved to this partition.');
    if (Leaving && Leaving !== operationId) throw busy('Another operation deletes, archives or moves the entity.');
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
        const etag = await deleteFirstChildren(leavingFamily, source.etag);
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
        const placed = await toPlaced(engine, entity, kept, { entity: destination, to: transfer.to ?? {} });
        const rows = await readCarriedRows(work);
        // A duplicate may have deleted some of them.
        if (Leaving && !isDeepStrictEqual((await readSource(work))[0], source)) continue;
        const change = { ...there, ...under({ entity, values: source.values }), before: arrived, after: placed };
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
function departure(
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

/** The change that a move will make at the destination: a request is rejected for a reference that the move would break. */
function arrivalOf(entity: Entity, { operationId, key, to }: Transfer, { values }: Live): Change[] {
  if (!to) return [];
  const arrival = { incarnation: operationId, movingFrom: '' };
  const address = addressOf(entity, { ...key, ...to });
  return [{ address, before: { state: 'absent' }, after: { ...values, ...to }, arrival }];
}

/** Reads the rows that move with the entity. */
async function readCarriedRows({ engine, entity, destination, transfer, from, to }: Work): Promise<CarriedRows> {
  const put: CarriedRows['put'][number][] = [];
  const drop: string[] = [];
  for (const { write } of entity.features) {
    const there = { entity: destination, address: to, to: transfer.to ?? {} };
    const carried = await write?.carried?.move(engine, entity, from, there);
    put.push(...(carried?.put ?? []));
    drop.push(...(carried?.drop ?? []));
  }
  return { put, drop };
}

/** Reads the destination and whether this operation has written it. */
async function readDestination({ engine, destination, transfer, to }: Work) {
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
async function openDestination({ engine, destination, transfer, to }: Work): Promise<void> {
  for (;;) {
    const found = await readLive(engine, destination, to);
    // The entity may have moved on since, and another transfer may be arriving there.
    if (!found || !isOfLife(found, transfer.operationId) || !found.system.MovingFrom) return;
    if (await open(engine, to, found)) return;
  }
}

function open({ storage }: Engine, to: Address, { etag }: Live): Promise<boolean> {
  return tryAction(storage, to, { kind: 'merge', row: to.row, properties: { MovingFrom: '' }, etag });
}

async function recordStatus(
  engine: Engine,
  transfer: Transfer,
  status: Operation['status'],
  reason?: string,
): Promise<void> {
  const { operation, operationId, entity, key, to } = transfer;
  const more = { ...(to ? { to } : {}), ...(reason === undefined ? {} : { reason }) };
  await writeOperation(engine, { operationId, operation, entity, key, status, ...more });
}
