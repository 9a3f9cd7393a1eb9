import { busy, hasCode } from '../../base/errors.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { type Address, MAX_TRANSACTION_ACTIONS, tryAction, trySubmit } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { readJoinedRow } from '../read/entity-rows.ts';
import type { Transfer } from '../reconcile/intent.ts';
import { tryCommit } from '../write/eventual-transaction.ts';

/**
 * The delete of an entity with more children than a transaction has rows:
 *
 *   request    read, check -> record the operation -> send the message: 202
 *   consumer   close the entity (`Leaving`) -> check that nothing refers to it; else open it: rejected
 *              -> `Left`: from here on it is deleted
 *              -> delete 99 children, and write the entity, in one transaction; again while it has more than 99
 *              -> turn the entity into a tombstone and delete the other children in one transaction, as for an entity with few
 *
 * Every transaction requires the entity's ETag, and so does every write of a child, which is rejected while the entity is closed. So:
 *
 *   - A child never exists without its parent: the last of them are deleted in the transaction that deletes the parent. Readers see the parent
 *     with fewer and fewer children until then.
 *   - No child is added meanwhile, and a later entity with this key begins without children.
 *   - A duplicate, late or repeated message continues from the row as it finds it, and a late request of a dead consumer fails.
 *   - The message names one incarnation. If the row has another one, or is gone, the entity is deleted.
 */

const GONE = undefined;
const CHANGED = 'The entity was changed before the operation ran.';
/** One row of a transaction is that of the parent. */
const CHILDREN_PER_TRANSACTION = MAX_TRANSACTION_ACTIONS - 1;
/** Children whose keys are read at a time, for ten transactions. */
const READ_CHILDREN = 10 * CHILDREN_PER_TRANSACTION + 1;

interface Closing {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly address: Address;
  readonly operationId: string;
  readonly hold: Hold;
}

/** Continues from any state of the row. Returns why the delete is impossible, or undefined once it is done. */
export async function deleteLarge(
  engine: Engine,
  entity: Entity,
  { key, operationId, incarnation, writeId }: Transfer,
  hold: Hold,
): Promise<string | undefined> {
  const closing = { engine, entity, address: addressOf(entity, key), operationId, hold };
  for (;;) {
    await hold.keep();
    const source = await readSource(closing);
    if (source?.system.Incarnation !== incarnation) return GONE;
    if (source.system.MovingFrom) throw busy('The entity is being moved to this partition.');
    if (source.system.Leaving && source.system.Leaving !== operationId)
      throw busy('Another operation deletes, archives or moves the entity.');
    if (!source.system.Leaving) {
      if (writeId !== undefined && writeId !== source.system.WriteId) return CHANGED;
      await mark(closing, source, { Leaving: operationId });
      continue;
    }
    if (!source.system.Left) {
      const refused = await findReferrer(closing, source);
      if (refused === undefined) await mark(closing, source, { Left: operationId });
      else if (await mark(closing, source, { Leaving: '' })) return refused;
      continue;
    }
    const etag = await deleteFirstChildren(closing, source.etag);
    if (etag === undefined) continue;
    const before = { ...source, etag };
    const change = { entity, address: closing.address, before, after: undefined, leaving: operationId };
    // Then the row is gone or a tombstone, which its own message settles.
    if (await tryCommit(engine, [change])) return GONE;
  }
}

/** Opens an entity whose delete is given up, with the children that are left. */
export async function openAgain(engine: Engine, entity: Entity, { key, operationId }: Transfer): Promise<void> {
  const closing = { engine, entity, address: addressOf(entity, key), operationId };
  for (;;) {
    const source = await readSource(closing);
    if (source?.system.Leaving !== operationId) return;
    if (await mark(closing, source, { Leaving: '', Left: '' })) return;
  }
}

async function readSource({ engine, entity, address }: Omit<Closing, 'hold'>): Promise<Live | undefined> {
  const row = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) });
  const snapshot = toSnapshot(entity, row);
  return snapshot.state === 'live' ? snapshot : undefined;
}

async function mark(
  { engine: { storage }, address }: Omit<Closing, 'hold'>,
  { etag }: Live,
  properties: Readonly<Partial<Record<'Leaving' | 'Left', string>>>,
): Promise<boolean> {
  return tryAction(storage, address, { kind: 'merge', row: address.row, properties, etag });
}

/** Why the entity cannot be deleted. Nothing new refers to an entity that is closed. */
async function findReferrer({ engine, entity, address }: Closing, before: Live): Promise<string | undefined> {
  try {
    for (const { write } of entity.features)
      await write?.checkRelated?.(engine, entity, [{ address, before, after: undefined }], []);
    return undefined;
  } catch (error) {
    if (hasCode(error, 'referenced')) return error.message;
    throw error;
  }
}

/**
 * Deletes children until a transaction has room for the others and their parent. Returns the new ETag of the parent; undefined if another
 * consumer of the message has changed something.
 */
async function deleteFirstChildren(
  { engine, entity, address, operationId, hold }: Closing,
  found: string,
): Promise<string | undefined> {
  const { storage } = engine;
  const { table, partition, row } = address;
  let etag: string | undefined = found;
  for (;;) {
    const children = await readChildren(engine, entity, address);
    let at = 0;
    for (; children.length - at > CHILDREN_PER_TRANSACTION; at += CHILDREN_PER_TRANSACTION) {
      const some = children.slice(at, at + CHILDREN_PER_TRANSACTION);
      const signal = await hold.keep();
      const done: Map<string, string> | undefined = await trySubmit(storage, {
        table,
        partition,
        signal,
        actions: [
          { kind: 'merge', row, properties: { TouchedBy: operationId }, etag },
          ...some.map((child) => ({ kind: 'delete', row: child }) as const),
        ],
      });
      etag = done?.get(row);
      if (etag === undefined) return undefined;
    }
    // A page that was full may have been followed by more.
    if (children.length < READ_CHILDREN) return etag;
  }
}

/** The row keys of the first children. */
async function readChildren(engine: Engine, entity: Entity, address: Address): Promise<string[]> {
  const read = entity.features.map(({ write }) => write?.carried?.read(engine, entity, address, READ_CHILDREN) ?? []);
  return (await Promise.all(read)).flat().map(({ row }) => row);
}
