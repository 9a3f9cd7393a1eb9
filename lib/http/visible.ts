import pMap from 'p-map';
import type { Caller } from '../access/token.ts';
import { RowkeyError } from '../errors.ts';
import { type Entity, omit, type Role, type Values } from '../patterns/entity.ts';
import { BlobGone } from '../patterns/large-entities.ts';
import { toPlain } from '../patterns/stored-values.ts';
import type { Call } from './route.ts';

const SHOWN_AT_ONCE = 8;

/**
 * What the caller is shown of an entity: what is encrypted is opened, and what is in a blob is fetched. Throws `needs-repair`
 * naming a field that cannot be read.
 */
export function shown(call: Call, entity: Entity, values: Values): Promise<Values> {
  return opened(call, entity, values, (field) => {
    throw new RowkeyError('needs-repair', `The field ${field} of one of ${entity.name} cannot be read.`, { field });
  });
}

/**
 * The same, with null for a field that cannot be read: it hides no other entity, nor that a write was done. A field without
 * a value is left out, and null is refused when it is sent back.
 */
export function shownWithGaps(call: Call, entity: Entity, values: Values): Promise<Values> {
  return opened(call, entity, values, () => null);
}

/** Those, one after the other in the same order. */
export function shownList(call: Call, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => shownWithGaps(call, entity, values), { concurrency: SHOWN_AT_ONCE });
}

/** Throws `BlobGone` where it may be that a blob was only replaced. */
function opened(
  { app, caller, isLastAttempt }: Call,
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

/** Who may not see a field may not set it, nor ask by it. Throws `forbidden`. */
export function checkMentions(entity: Entity, caller: Caller, input: unknown): void {
  if (typeof input !== 'object' || input === null) return;
  const field = hiddenFields(entity, caller).find((hidden) => hidden in input);
  if (field)
    throw new RowkeyError('forbidden', `The field ${field} is not one that this caller may set or ask by.`, { field });
}

/** Reading by a field tells who has it: an index is for those who may see every field that it is made of. */
export function rolesToReadBy(entity: Entity, fields: readonly string[]): Role[] {
  return entity.access.read.filter((role) =>
    fields.every((field) => entity.access.restricted?.[field]?.includes(role) ?? true),
  );
}

/** The fields that none of the caller's roles may read. */
export function hiddenFields({ access }: Entity, { roles }: Caller): string[] {
  return Object.entries(access.restricted ?? {}).flatMap(([field, allowed]) =>
    allowed?.some((role) => roles.includes(role)) ? [] : [field],
  );
}
