import { busy, hasCode } from '../../base/errors.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { Engine } from '../engine.ts';
import { readJoinedRow } from '../read/entity-rows.ts';
import type { Transfer } from '../reconcile/intent.ts';
import { tryCommit } from '../write/eventual-transaction.ts';
import { isAllowed, type RecordedRules, RULED_OUT } from '../write/recorded-rules.ts';
import { deleteChildren, type Family, mark } from './many-children.ts';

/**
 * The delete of an entity with more children than fit into a transaction with it:
 *
 *   request    read, check -> record the operation -> send the message: 202
 *   consumer   ask the rules of the caller again -> close the entity (`Leaving`) -> check that nothing refers to it; else open it: rejected
 *              -> `Left`: from here on it is deleted
 *              -> delete 99 children, and write the entity, in one transaction; again while it has any
 *              -> turn the entity into a tombstone, as for an entity without children
 *
 * Every transaction requires the entity's ETag, and so does every write of a child, which is rejected while the entity is closed. So:
 *
 *   - A child never exists without its parent, which is deleted last. Readers see the parent with fewer and fewer children until then.
 *   - No child is added meanwhile, and a later entity with this key begins without children.
 *   - A duplicate, late or repeated message continues from the row as it finds it, and a late request of a dead consumer fails.
 *   - The message names one incarnation. If the row has another one, or is gone, the entity is deleted.
 */

const GONE = undefined;
const CHANGED = 'The entity was changed before the operation ran.';
/** Continues from any state of the row. Returns why the delete is impossible, or undefined once it is done. */
export async function deleteLarge(
  engine: Engine,
  entity: Entity,
  { key, operationId, incarnation, writeId }: Transfer,
  { hold, rules }: { readonly hold: Hold; readonly rules?: RecordedRules | undefined },
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
      // The caller may not know that the entity is there.
      if (!isAllowed(rules, source.values)) return RULED_OUT;
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
    const etag = await deleteChildren(closing, source.etag);
    if (etag === undefined) continue;
    const before = { ...source, etag };
    const change = { entity, address: closing.address, before, after: undefined, leaving: operationId };
    // Then the row is gone or a tombstone, which its own message settles.
    if (await tryCommit(engine, [change])) return GONE;
  }
}

/**
 * Opens an entity whose operation is given up: after a delete with the children that are left. An archive or a move that has begun to delete
 * children can only be continued.
 */
export async function openAgain(
  engine: Engine,
  entity: Entity,
  { operation, key, operationId }: Transfer,
): Promise<void> {
  const closing = { engine, entity, address: addressOf(entity, key), operationId };
  for (;;) {
    const source = await readSource(closing);
    if (source?.system.Leaving !== operationId) return;
    if (source.system.Left && operation !== 'delete') return;
    if (await mark(closing, source, { Leaving: '', Left: '' })) return;
  }
}

async function readSource({ engine, entity, address }: Omit<Family, 'hold'>): Promise<Live | undefined> {
  const row = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) });
  const snapshot = toSnapshot(entity, row);
  return snapshot.state === 'live' ? snapshot : undefined;
}

/** Why the entity cannot be deleted. Nothing new refers to an entity that is closed. */
async function findReferrer({ engine, entity, address }: Family, before: Live): Promise<string | undefined> {
  try {
    for (const { write } of entity.features)
      await write?.checkRelated?.(engine, entity, [{ address, before, after: undefined }], []);
    return undefined;
  } catch (error) {
    if (hasCode(error, 'referenced')) return error.message;
    throw error;
  }
}
