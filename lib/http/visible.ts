import pMap from 'p-map';
import { canRead, hiddenFields } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { type Entity, omit, pick, type Values } from '../define/entity.ts';
import { toPlain } from '../engine/write/stored-values.ts';
import { RowkeyError } from '../errors.ts';
import { BlobGone } from '../patterns/large-entities.ts';
import type { RequestContext } from './route.ts';

const SHOWN_CONCURRENCY = 8;

/**
 * What the caller is shown of an entity: what is encrypted is opened, and what is in a blob is fetched. Throws `needs-repair`
 * naming a field that cannot be read.
 */
export function shown(call: RequestContext, entity: Entity, values: Values): Promise<Values> {
  return opened(call, entity, values, (field) => {
    throw new RowkeyError('needs-repair', `The field ${field} of one of ${entity.name} cannot be read.`, { field });
  });
}

/**
 * The same, with null for a field that cannot be read: it hides no other entity, nor that a write was done. A field without
 * a value is left out, and null is refused when it is sent back.
 */
export function shownWithGaps(call: RequestContext, entity: Entity, values: Values): Promise<Values> {
  return opened(call, entity, values, () => null);
}

/** The answer to a write: the entity, or its key where the caller may write it and not read it. */
export async function shownToWriter(call: RequestContext, entity: Entity, values: Values): Promise<Values> {
  return canRead(entity, call.caller) ? shownWithGaps(call, entity, values) : pick(values, entity.keyFields);
}

/** Those, one after the other in the same order. */
export function shownList(call: RequestContext, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => shownWithGaps(call, entity, values), { concurrency: SHOWN_CONCURRENCY });
}

/** Throws `BlobGone` where it may be that a blob was only replaced. */
function opened(
  { app, caller, isLastAttempt }: RequestContext,
  entity: Entity,
  values: Values,
  instead: (field: string) => null,
): Promise<Values> {
  return toPlain(app.engine, entity, visible(entity, caller, values), (field, error) => {
    if (error instanceof BlobGone && !isLastAttempt) throw error;
    return instead(field);
  });
}

/** Fields that only some roles are shown are left out for the others, as if they were empty. */
function visible(entity: Entity, caller: Caller, values: Values): Values {
  return omit(values, hiddenFields(entity, caller));
}
