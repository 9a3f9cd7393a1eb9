import pMap from 'p-map';
import { entityError, isOutcomeUnknown, RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import type { Snapshot, Unread } from '../../define/declaration/change.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { remoteIndexOf } from '../../define/places/index-entries.ts';
import { ANY_ETAG, readRow } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';

/** Determines the meaning of a conflict of an entity group transaction from the current entities. */

const READS_CONCURRENCY = 16;

/** The entity has changed since the change was planned. */
export class EntityChanged extends Error {
  override readonly name = 'EntityChanged';
}

/** A change with the current state. */
export type Fresh = EntityChange & { readonly before: Snapshot };

/** Returns the changes with the current state of their entities. */
export async function readChanged(engine: Engine, changes: readonly EntityChange[]): Promise<Fresh[]> {
  return pMap(
    changes,
    async (change) => ({ ...change, before: toSnapshot(change.entity, await readRow(engine.storage, change.address)) }),
    { concurrency: READS_CONCURRENCY },
  );
}

/**
 * The error of a create over a live entity, or of an update or a put of an entity that changed. Undefined for a create over a
 * tombstone.
 */
export function conflictOf(planned: readonly EntityChange[], fresh: readonly Fresh[]): Error | undefined {
  for (const [index, change] of planned.entries()) {
    const { before: then, entity, after } = change;
    const now = fresh[index]?.before ?? { state: 'absent' };
    if (then.state === 'unread') {
      const error = unreadConflict(change, then, now);
      if (error) return atAction(change, error);
    } else if (then.state === 'live') {
      if (now.state !== 'live' || now.etag !== then.etag) return new EntityChanged();
    } else if (now.state === 'live') {
      return change.mayExist ? new EntityChanged() : atAction(change, duplicateKey(entity, after ?? {}));
    }
  }
  return undefined;
}

/** The error with the position of the action that causes it, if the request has several. */
export function atAction<Reason>({ position }: Pick<EntityChange, 'position'>, error: Reason | RowkeyError) {
  if (position === undefined || !(error instanceof RowkeyError) || isOutcomeUnknown(error)) return error;
  const where = `The action at ${position}:`;
  const { detail } = error;
  // Without a detail, the code decides whether a caller may see the message.
  return new RowkeyError(error.code, `${where} ${error.message}`, {
    ...error,
    ...(detail === undefined ? {} : { detail: `${where} ${detail}` }),
    cause: error,
  });
}

/** The error of a write without a read whose condition does not hold. A write without a condition conflicts with nothing. */
function unreadConflict(
  { entity, after, isPartial }: EntityChange,
  { etag, key }: Unread,
  now: Snapshot,
): RowkeyError | undefined {
  if (etag === undefined && after && !isPartial) return undefined;
  if (now.state !== 'live')
    return after && !isPartial
      ? entityError('etag-mismatch', entity, key, 'does not exist, so If-Match does not hold.')
      : entityError('not-found', entity, key, 'not found.');
  if (etag === undefined || etag === ANY_ETAG || etag === now.etag) return undefined;
  const why = 'changed since it was read: If-Match does not name its current ETag.';
  return entityError('etag-mismatch', entity, key, why, { etag: now.etag });
}

/** The error of a key under which there is a row already. */
export function duplicateKey(entity: Entity, values: Values): RowkeyError {
  const field = entity.keyFields.at(-1) ?? 'key';
  return entityError('duplicate-key', entity, values, 'already exists.', {
    field,
    accepted: 'a value that no other entity has',
  });
}

/** The error of a unique value that another entity has. */
export function duplicateEntry(entity: Entity, indexEntry: IndexEntry): RowkeyError {
  const remote = remoteIndexOf(entity, indexEntry);
  return duplicateValue(entity, remote ? [...remote.at.partition.fields, ...remote.at.row.fields] : []);
}

/** The error of a value that another entity has in an index with these fields in its key. */
export function duplicateValue(entity: Entity, fields: readonly string[]): RowkeyError {
  const field = fields.find((name) => !entity.keyFields.includes(name)) ?? fields[0] ?? 'key';
  return new RowkeyError('duplicate-value', `"${field}" is taken: another entity of ${entity.name} has this value.`, {
    field,
    accepted: 'a value that no other entity has',
  });
}
