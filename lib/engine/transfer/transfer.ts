import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { busy, hasCode, NeverSucceeds, RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { maskOf, parse } from '../../define/codec/validation.ts';
import type { CarriedRows, Change, Live, Snapshot } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import { hasExpired } from '../../define/declaration/expiry.ts';
import { addressOf, indexEntriesOf, isContested } from '../../define/places/index-entries.ts';
import { type Address, type Row, readRow, tryAction } from '../../storage/rows.ts';
import { inPattern, traceContext } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { makeAndNote } from '../note-change.ts';
import { type EntityRowOptions, notFound, readJoinedRow, readLive } from '../read/entity-rows.ts';
import { holdFor, sendWork } from '../reconcile/hold.ts';
import {
  INDEX_CHANGES_QUEUE,
  type Intent,
  MESSAGE_VERSION,
  TRANSFERS_QUEUE,
  type Transfer,
} from '../reconcile/intent.ts';
import { partFor } from '../reconcile/queues.ts';
import { confirmedRow } from '../reconcile/reconcile.ts';
import { claimFree, hasLiveClaim, isOwnedBy } from '../reconcile/unique-claim.ts';
import { duplicateEntry } from '../write/conflict.ts';
import { tryCommit } from '../write/eventual-transaction.ts';
import { findOperation, newOperationId, type Operation, writeOperation } from '../write/operation.ts';
import { toPlaced } from '../write/stored-values.ts';
import { deleteLarge, openAgain } from './large-delete.ts';

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
  entity: Entity,
  asked: Pick<Transfer, 'operation' | 'key' | 'to'>,
  id?: string,
): Promise<string> {
  const operationId = newOperationId(engine.now(), id);
  const named = { operation: asked.operation, operationId, entity: entity.name };
  const earlier = id === undefined ? undefined : await findOperation(engine, named);
  if (earlier && earlier.status !== 'running') return operationId;
  const address = addressOf(entity, asked.key);
  const fields = Object.keys(entity.columns);
  const source = await readLive(engine, entity, address, { fields, isWhole: true });
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
  const part = await partFor(engine, TRANSFERS_QUEUE, address.partition);
  await makeAndNote(engine, change, () => sendWork(engine, part, { ...transfer, ...traceContext() }));
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
    entity: Entity,
    transfer: Transfer,
    { hold }: { readonly hold: Hold } = { hold: holdFor(engine) },
  ): Promise<void> => {
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
    const reason = await (isDelete
      ? deleteLarge(engine, entity, transfer, hold)
      : transferEntity({ engine, entity, destination, transfer, from, to, hold }));
    if (reason === undefined) await recordStatus(engine, transfer, 'succeeded');
    else await failTransfer(engine, entity, transfer, reason);
  },
);

/** Records that an operation failed, unless a duplicate of its message has succeeded or no such operation is recorded. */
export async function failTransfer(engine: Engine, entity: Entity, transfer: Transfer, reason: string): Promise<void> {
  const recorded = await findRecord(engine, transfer);
  if (!recorded || recorded.status === 'succeeded') return;
  if (transfer.operation === 'delete') await openAgain(engine, entity, transfer);
  await recordStatus(engine, transfer, 'failed', reason);
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

interface Work {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly destination: Entity;
  readonly transfer: Transfer;
  readonly from: Address;
  readonly to: Address;
  readonly hold: Hold;
}

/** The pause before a row is read again on which a writer has a live claim. */
const CLAIM_WAIT_MS = 250;
const GONE = 'The entity was deleted, or its key changed, before the operation ran.';
const TAKEN = 'Another entity has this key at the destination.';
/** Reasons why the entity cannot leave, or why it or its children can never be written at the destination. */
const REFUSALS = ['duplicate-value', 'referenced', 'too-large', 'invalid-input'] as const;

/** Continues from any state of the two rows. Returns why the transfer cannot be done, or undefined once it is done. */
async function transferEntity(work: Work): Promise<string | undefined> {
  const { engine, entity, destination, transfer, from, to, hold } = work;
  const arrival = { incarnation: transfer.operationId, movingFrom: JSON.stringify([from.partition, from.row]) };
  const dropDestination = (before: Snapshot) =>
    tryCommit(engine, [{ entity: destination, address: to, before, after: undefined, arrival }]);
  let copiedFrom = '';
  let after: Values = {};
  let refused: string | undefined;
  for (;;) {
    await hold.keep();
    // In this order: if the source still exists, no duplicate of this message has opened the destination before.
    const reached = await readDestination(work);
    const [source, lost] = await readSource(work);
    if (source.state === 'tombstone' && source.movedTo === transfer.operationId) {
      await openDestination(work);
      await tryAction(engine.storage, from, { kind: 'delete', row: from.row, etag: source.etag });
      return undefined;
    }
    if (source.state !== 'live' || source.system.Incarnation !== transfer.incarnation) {
      // In this order: a source that a duplicate has deleted had been written to the destination before.
      const { ours } = await readDestination(work);
      if (ours && !ours.system.MovingFrom) return undefined;
      if (!ours || (await dropDestination(ours))) return GONE;
      continue;
    }
    const { arrived, ours } = reached;
    if (source.system.MovingFrom) throw busy('The entity is being moved to this partition.');
    if (arrived.state === 'live' && !ours) return TAKEN;
    refused ??= lost;
    if (refused !== undefined) {
      if (!ours) return refused;
      if (destination === entity) await handBack(work, source.values);
      await dropDestination(ours);
      continue;
    }
    try {
      // The source's ETag covers its children too: each write of a child touches the source.
      if (copiedFrom !== source.etag) {
        const placed = await toPlaced(engine, entity, source.values, { entity: destination, to: transfer.to ?? {} });
        const carried = await readCarriedRows(work);
        const change = { entity: destination, address: to, before: arrived, after: placed, arrival, carried };
        const [committed] = (await tryCommit(engine, [change])) ?? [];
        if (!committed) continue;
        // With the fields that patterns have set from the rows at the destination.
        after = committed.values;
        copiedFrom = source.etag;
      }
      const life = { from, incarnation: transfer.incarnation, to, etag: source.etag };
      if (destination === entity && !(await handOver(work, after, life))) continue;
      // If another writer was faster, both rows are read again.
      await tryCommit(engine, [departure(entity, transfer, from, source)]);
    } catch (error) {
      // Another writer has just inserted this key, perhaps a duplicate of this message.
      if (hasCode(error, 'duplicate-key')) continue;
      if (!hasCode(error, ...REFUSALS)) throw error;
      refused = error.message;
    }
  }
}

interface HandOver {
  readonly from: Address;
  /** The incarnation of the giver. */
  readonly incarnation: string;
  readonly to: Address;
  /** The giver's ETag when it was copied. Without it, rows are handed back as far as possible. */
  readonly etag?: string;
}

/**
 * Hands the rows of unique indexes from the giver to the taker, which is committed. Each row changes under its ETag, and not
 * while a writer has a live claim on it. The giver is read after the row, so that a later entity with the giver's key keeps its
 * rows. Returns false if the giver is deleted or has changed. A missing row (a new index, or a key with a part that moves) is
 * claimed for the taker. Throws `duplicate-value` if the row belongs to another entity.
 */
async function handOver(
  { engine, entity, transfer, hold }: Work,
  values: Values,
  { from, incarnation, to, etag }: HandOver,
): Promise<boolean> {
  const intent = transfer.operationId;
  for (const indexEntry of indexEntriesOf(entity, values).filter((each) => isContested(entity, each))) {
    for (;;) {
      await hold.keep();
      const row = await readRow(engine.storage, indexEntry);
      const isClaimed = row?.properties.Claim === intent;
      if (row && isOwnedBy(row, to) && !isClaimed) break;
      const giver = await readLive(engine, entity, from);
      if (giver?.system.Incarnation !== incarnation) {
        // A duplicate of this message handed it over, to a taker that has changed since.
        if (row && isClaimed)
          await tryAction(engine.storage, indexEntry, { kind: 'delete', row: indexEntry.row, etag: row.etag });
        return false;
      }
      if (!row || !(isOwnedBy(row, from) || isOwnedBy(row, to))) {
        if (etag !== undefined && giver.etag !== etag) return false;
        if (row && etag === undefined) break;
        if (row) throw duplicateEntry(entity, indexEntry);
        await claimFree(engine, indexEntry, to, intent);
        continue;
      }
      if (hasLiveClaim(row, { intent }, engine)) {
        await sleep(CLAIM_WAIT_MS);
        continue;
      }
      const properties = confirmedRow(entity, values, indexEntry);
      if (
        await tryAction(engine.storage, indexEntry, {
          kind: 'replace',
          row: indexEntry.row,
          properties,
          etag: row.etag,
        })
      )
        break;
    }
  }
  return true;
}

/** Undoes a move that cannot be completed: returns the rows that the source needs. */
async function handBack(work: Work, values: Values): Promise<void> {
  const { engine, entity, transfer, from, to } = work;
  await handOver(work, values, { from: to, incarnation: transfer.operationId, to: from });
  // The source may have given up values meanwhile, so its indexes are reconciled.
  const { table, partition, row } = from;
  const items = [{ partition, row, indexEntries: indexEntriesOf(entity, values) }];
  const intent: Intent = { version: MESSAGE_VERSION, intent: randomUUID(), entity: entity.name, table, items };
  await sendWork(engine, await partFor(engine, INDEX_CHANGES_QUEUE, partition), { ...intent, ...traceContext() });
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
  const arrived = toSnapshot(destination, await readWholeRow(engine, destination, to));
  const ours = arrived.state === 'live' && arrived.system.Incarnation === transfer.operationId ? arrived : undefined;
  return { arrived, ours };
}

/** Reads the source, and why it cannot be transferred if a further row is lost: a copy would no longer show the loss. */
async function readSource({ engine, entity, from }: Work): Promise<[Snapshot, string | undefined]> {
  try {
    return [toSnapshot(entity, await readWholeRow(engine, entity, from, { isWhole: true })), undefined];
  } catch (error) {
    if (!hasCode(error, 'needs-repair')) throw error;
    return [toSnapshot(entity, await readWholeRow(engine, entity, from)), error.message];
  }
}

function readWholeRow(
  engine: Engine,
  entity: Entity,
  address: Address,
  { isWhole }: Pick<EntityRowOptions, 'isWhole'> = {},
): Promise<Row | undefined> {
  return readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns), isWhole });
}

/** Opens the destination: from here on it is an ordinary entity. */
async function openDestination({ engine, destination, transfer, to }: Work): Promise<void> {
  for (;;) {
    const found = await readLive(engine, destination, to);
    // The entity may have moved on since, and another transfer may be arriving there.
    if (found?.system.Incarnation !== transfer.operationId || !found.system.MovingFrom) return;
    const properties = { MovingFrom: '' };
    if (await tryAction(engine.storage, to, { kind: 'merge', row: to.row, properties, etag: found.etag })) return;
  }
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
