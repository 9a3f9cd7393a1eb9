import type { Live } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { Address } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { holdFor } from '../reconcile/hold.ts';
import { MESSAGE_VERSION, type Transfer } from '../reconcile/intent.ts';
import { Operation, writeOperation } from '../write/operation.ts';
import { deleteLarge, openAgain } from './large-delete.ts';
import { mark } from './many-children.ts';
import { openDestination, readDestination, readSnapshot, transferEntity } from './transfer-entity.ts';

/**
 * Ends an archive, a move or a large delete whose message is gone, as after a restore: one that has passed its point of no return is finished, and
 * any other is undone. The message would have named the incarnation of the entity. Before the point of no return, nothing else tells it from
 * a later entity with its key, so such an operation is not begun again.
 */

const RESTORED = 'The app was restored from a backup before the operation ended. Request it again.';

interface EndOptions {
  /**
   * True if this operation had turned the entity at the address into a tombstone, which is gone: a delete counts as earlier than it was, so a
   * restore may find it done, and what came before it not.
   */
  readonly hasLeft: (from: Address, operationId: string) => Promise<boolean>;
  /** True if this operation turned the entity at the address into a tombstone soon after the moment that is restored. */
  readonly leavesLater: (from: Address, operationId: string) => Promise<boolean>;
}

/** Returns what became of the operation. Safe to repeat. Throws `busy` if another operation must end first. */
export async function endTransfer(
  engine: Engine,
  entity: Entity,
  recorded: Live,
  options: EndOptions,
): Promise<'finished' | 'undone'> {
  const operation = Operation.parse(recorded.values);
  const outcome = await endRows(engine, entity, { operation, ...options });
  const status = outcome === 'finished' ? 'succeeded' : 'failed';
  if (operation.status !== status) {
    const reason = status === 'failed' ? { reason: RESTORED } : {};
    await writeOperation(engine, { ...operation, status, ...reason }, { etag: recorded.etag });
  }
  return outcome;
}

async function endRows(
  engine: Engine,
  entity: Entity,
  { operation: recorded, hasLeft, leavesLater }: EndOptions & { readonly operation: Operation },
): Promise<'finished' | 'undone'> {
  const { operation, operationId, key } = recorded;
  // The record of a create is written when the entity is.
  if (operation === 'create') return 'finished';
  const from = addressOf(entity, key);
  const source = await readSnapshot(engine, entity, from);
  const isLive = source.state === 'live';
  const isClosed = isLive && source.system.Leaving === operationId;
  const isLeft = isClosed && Boolean(source.system.Left);
  const transfer: Transfer = {
    version: MESSAGE_VERSION,
    operation,
    operationId,
    entity: entity.name,
    key,
    ...(recorded.to ? { to: recorded.to } : {}),
    incarnation: isLive ? source.system.Incarnation : '',
  };
  const hold = holdFor(engine);
  if (operation === 'delete') {
    if (isLeft) await deleteLarge(engine, entity, transfer, { hold });
    else if (isClosed) await openAgain(engine, entity, transfer);
    return isLeft || !isLive ? 'finished' : 'undone';
  }
  const destination = operation === 'archive' ? entity.archive : entity;
  // The model has no archive any more.
  if (!destination) return 'undone';
  const to = addressOf(destination, { ...key, ...recorded.to });
  const work = { engine, entity, destination, transfer, from, to, hold };
  const isGone = source.state === 'tombstone' && source.movedTo === operationId;
  const { ours } = await readDestination(work);
  if (!isGone && ours && !ours.system.MovingFrom) {
    // The clock of the source may be ahead of that of the destination. Whatever else is at the source by now is another entity.
    if (isClosed || (isLive && (await leavesLater(from, operationId)))) {
      const family = { engine, entity, address: from, operationId };
      if (!isLeft) await mark(family, source, { Leaving: operationId, Left: operationId });
      await transferEntity(work);
    }
    return 'finished';
  }
  if (!isLive && !isGone && (await hasLeft(from, operationId))) {
    await openDestination(work);
    return 'finished';
  }
  const refused = isLive && !isLeft ? RESTORED : undefined;
  return (await transferEntity(work, refused)) === undefined ? 'finished' : 'undone';
}
