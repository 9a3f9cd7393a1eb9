import type { Values } from '../../base/values.ts';
import type { Live, Snapshot } from '../../define/declaration/change.ts';
import { type Entity, formerOf } from '../../define/declaration/entity.ts';
import { buildKey, parseKey } from '../../define/keys/key-template.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { Address } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { holdFor } from '../reconcile/hold.ts';
import { MESSAGE_VERSION, type Transfer } from '../reconcile/intent.ts';
import { findOperation, isOperationId } from '../write/operation.ts';
import type { Work } from './hand-over.ts';
import { GONE, INTERRUPTED, readSnapshot, rekeyOf, transferEntity } from './transfer-entity.ts';

/** The key fields of an address; undefined if no entity of the declaration has it. */
export function keyAt(
  { partition: inPartition, row: inRow }: Entity,
  { partition, row }: Omit<Address, 'table'>,
): Values | undefined {
  const [first, second] = [parseKey(inPartition, partition), parseKey(inRow, row)];
  if (!first || !second) return undefined;
  const key = { ...first, ...second };
  return buildKey(inPartition, key) === partition && buildKey(inRow, key) === row ? key : undefined;
}

/** True for the tombstone of an entity that has left this key for another one, and not for that of an archive or a move. */
export function isTombstoneOfRekey({ MovedTo }: { readonly MovedTo?: unknown }): boolean {
  return typeof MovedTo === 'string' && MovedTo !== '' && !isOperationId(MovedTo);
}

/** True for a row to which an entity arrives from its former key, and not for one to which a move brings it. */
export function arrivesFromFormer(
  entity: Entity,
  key: Values,
  { MovingFrom }: { readonly MovingFrom?: unknown },
): boolean {
  const former = formerOf(entity);
  if (!MovingFrom || !former) return false;
  const { partition, row } = addressOf(former, key);
  return MovingFrom === JSON.stringify([partition, row]);
}

/** The entity whose key changes. */
interface Rekeyed {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly former: Entity;
  /** The entity whose archive it is, or itself. */
  readonly owner: Entity;
  readonly key: Values;
}

/**
 * Moves an entity from its former key to the key of its declaration. The operation follows from the entity, so that several processes do
 * it as duplicates of one message. What another operation has begun there is finished or undone first. Returns why it cannot be done, or
 * undefined if it is done, or if there is no such entity.
 */
export async function moveToKey(
  { rekey: _, guard: _guard, ...engine }: Engine,
  entity: Entity,
  key: Values,
  { owner = entity }: { readonly owner?: Entity } = {},
): Promise<string | undefined> {
  const former = formerOf(entity);
  if (!former) return undefined;
  const rekeyed = { engine, entity, former, owner, key };
  const [from, to] = [addressOf(former, key), addressOf(entity, key)];
  for (;;) {
    const source = await readSnapshot(engine, former, from);
    if (source.state === 'live' && source.system.MovingFrom) {
      const reason = await endArrival(rekeyed, from, source);
      if (reason !== undefined) return reason;
      continue;
    }
    if (source.state === 'tombstone' && isOperationId(source.movedTo)) return endOperation(rekeyed, source.movedTo);
    const operationId = await findMove(rekeyed, source, to);
    if (!operationId) return undefined;
    const incarnation = source.state === 'live' ? source.system.Incarnation : '';
    const why = await transferEntity(workOf(rekeyed, { from, to, destination: entity, operationId, incarnation }));
    // Another process has moved it.
    return why === GONE ? undefined : why;
  }
}

/** The id of the operation that gives an entity its key, from the rows that are there. */
async function findMove({ engine, entity, key }: Rekeyed, source: Snapshot, to: Address): Promise<string | undefined> {
  if (source.state === 'live') return rekeyOf(source.system.Incarnation);
  if (source.state === 'tombstone' && source.movedTo) return source.movedTo;
  const arrived = await readSnapshot(engine, entity, to);
  const isArriving = arrived.state === 'live' && arrivesFromFormer(entity, key, arrived.system);
  return isArriving ? arrived.system.Incarnation : undefined;
}

/** Finishes or undoes the operation, or the move in the other direction, that brings an entity to its former key. */
async function endArrival(
  rekeyed: Rekeyed,
  to: Address,
  { system: { MovingFrom = '', Incarnation } }: Live,
): Promise<string | undefined> {
  const { engine, entity, former, owner } = rekeyed;
  const [partition = '', row = ''] = JSON.parse(MovingFrom);
  const isArchived = entity !== owner && partition === to.partition && row === to.row;
  const givers = isArchived ? [formerOf(owner)] : [former, entity];
  const giver = givers.find((each) => each && keyAt(each, { partition, row }));
  if (!giver) return 'It arrives from an address that no entity has.';
  const from = { table: giver.table, partition, row };
  const source = await readSnapshot(engine, giver, from);
  const incarnation = source.state === 'live' ? source.system.Incarnation : '';
  const between = { from, to, destination: former, operationId: Incarnation, incarnation };
  await transferEntity({ ...workOf(rekeyed, between), entity: giver }, INTERRUPTED);
  return undefined;
}

/** Finishes the operation that has taken an entity away from its former key. */
async function endOperation(rekeyed: Rekeyed, operationId: string): Promise<string | undefined> {
  const { engine, owner } = rekeyed;
  for (const operation of ['move', 'archive'] as const) {
    const recorded = await findOperation(engine, { operation, operationId, entity: owner.name });
    const destination = formerOf(operation === 'move' || !owner.archive ? owner : owner.archive);
    if (!recorded || !destination) continue;
    const [key, to] = [recorded.key as Values, recorded.to as Values | undefined];
    const from = addressOf(rekeyed.former, key);
    const between = { from, to: addressOf(destination, { ...key, ...to }), destination, operationId, incarnation: '' };
    await transferEntity(workOf(rekeyed, between), INTERRUPTED);
    return undefined;
  }
  return 'An operation has taken the entity away and has not ended, and its record is gone.';
}

function workOf(
  { engine, former, owner, key }: Rekeyed,
  {
    operationId,
    incarnation,
    ...between
  }: Pick<Work, 'from' | 'to' | 'destination'> & Pick<Transfer, 'operationId' | 'incarnation'>,
): Work {
  const transfer = {
    version: MESSAGE_VERSION,
    operation: 'move',
    operationId,
    entity: owner.name,
    key,
    incarnation,
  } as const;
  return { engine, entity: former, ...between, transfer, hold: holdFor(engine) };
}
