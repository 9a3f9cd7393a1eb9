import pMap from 'p-map';
import type { Caller } from '../access/token.ts';
import { RowkeyError } from '../errors.ts';
import type { Entity, Role, Values } from '../patterns/entity.ts';
import { toPlain } from '../patterns/stored-values.ts';
import type { Call } from './route.ts';

const SHOWN_AT_ONCE = 8;

/** What the caller is shown of an entity: what is encrypted is opened, and what is in a blob is fetched. */
export function shown({ app, caller }: Call, entity: Entity, values: Values): Promise<Values> {
  return toPlain(app.engine, entity, visible(entity, caller, values));
}

/** Those, one after the other in the same order. */
export function shownList(call: Call, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => shown(call, entity, values), { concurrency: SHOWN_AT_ONCE });
}

/** Fields that only some roles are shown are left out for the others, as if they were empty. */
function visible(entity: Entity, caller: Caller, values: Values): Values {
  const hidden = hiddenFields(entity, caller);
  return Object.fromEntries(Object.entries(values).filter(([field]) => !hidden.includes(field)));
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

function hiddenFields({ access }: Entity, { roles }: Caller): string[] {
  return Object.entries(access.restricted ?? {}).flatMap(([field, allowed]) =>
    allowed?.some((role) => roles.includes(role)) ? [] : [field],
  );
}
