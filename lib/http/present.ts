import pMap from 'p-map';
import { canRead, hiddenFields } from '../access/rule.ts';
import { type Entity, omit, pick, type Values } from '../define/entity.ts';
import { toPlain } from '../engine/write/stored-values.ts';
import { RowkeyError } from '../errors.ts';
import { BlobGone } from '../patterns/large-entities.ts';
import type { RequestContext } from './route.ts';

const PRESENT_CONCURRENCY = 8;

/**
 * The fields of an entity that the caller may read, decrypted and fetched from blobs. Throws `needs-repair` naming a field
 * that cannot be read.
 */
export function presentEntity(context: RequestContext, entity: Entity, values: Values): Promise<Values> {
  return openFields(context, entity, values, (field) => {
    throw new RowkeyError('needs-repair', `"${field}" of an entity of ${entity.name} cannot be read.`, { field });
  });
}

/**
 * Like `presentEntity`, with null for a field that cannot be read: an unreadable field must not hide other entities, nor that
 * a write succeeded. A field without a value is left out instead, and a null that is sent back is rejected.
 */
export function presentWithGaps(context: RequestContext, entity: Entity, values: Values): Promise<Values> {
  return openFields(context, entity, values, () => null);
}

/** The response to a write: the entity, or only its key for a caller who may not read the entity. */
export async function presentToWriter(context: RequestContext, entity: Entity, values: Values): Promise<Values> {
  return canRead(entity, context.caller) ? presentWithGaps(context, entity, values) : pick(values, entity.keyFields);
}

/** Keeps the order. */
export function presentList(context: RequestContext, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => presentWithGaps(context, entity, values), { concurrency: PRESENT_CONCURRENCY });
}

/** Throws `BlobGone` if the blob may only have been replaced since the row was read. */
function openFields(
  { app, caller, isLastAttempt }: RequestContext,
  entity: Entity,
  values: Values,
  replaceUnreadable: (field: string) => null,
): Promise<Values> {
  const readable = omit(values, hiddenFields(entity, caller));
  return toPlain(app.engine, entity, readable, (field, error) => {
    if (error instanceof BlobGone && !isLastAttempt) throw error;
    return replaceUnreadable(field);
  });
}
