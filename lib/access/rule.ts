import type { Entity, Role } from '../define/entity.ts';
import { RowkeyError } from '../errors.ts';
import type { Caller } from './token.ts';

/**
 * What a caller may read and write, by the declaration alone. Every route asks here:
 *
 * - An entity is shown to the roles of `access.read`, without the fields of `access.restricted` that none of the caller's roles
 *   has. A role that only writes gets the key and the ETag of what it wrote, or no body.
 * - A key of a row, of the entity or of an index of it, is shown only to a caller who may read the whole entity: the key of
 *   an index row is made of fields, and so are the keys in the audit log, in findings and in the text of a message.
 * - A restricted field is neither written nor asked by without a role that may read it.
 */

type Roles = Pick<Caller, 'roles'>;

export function canRead({ access }: Entity, { roles }: Roles): boolean {
  return access.read.some((role) => roles.includes(role));
}

/** The fields that none of the caller's roles may read, besides a role in `access.read`. */
export function hiddenFields({ access }: Entity, { roles }: Roles): string[] {
  return Object.entries(access.restricted ?? {}).flatMap(([field, allowed]) =>
    allowed?.some((role) => roles.includes(role)) ? [] : [field],
  );
}

/** Whether the caller may read the entity with every field of it. */
export function canReadWhole(entity: Entity, caller: Roles): boolean {
  return canRead(entity, caller) && hiddenFields(entity, caller).length === 0;
}

/** Whether some role may write the entity and not read it. */
export function hasWriteOnlyRoles({ access }: Entity): boolean {
  return access.write.some((role) => !access.read.includes(role));
}

/** Throws `forbidden` unless the caller may read the entity. */
export function requireReader(entity: Entity, caller: Roles): void {
  if (!canRead(entity, caller)) throw notForCaller(entity, entity.access.read);
}

/** Throws `forbidden` unless the caller may read the entity with every field of it. */
export function requireWholeReader(entity: Entity, caller: Roles): void {
  if (!canReadWhole(entity, caller)) throw notForCaller(entity, rolesToReadBy(entity, Object.keys(entity.columns)));
}

/** Reading by a field tells who has it: an index is for those who may see every field that it is made of. */
export function rolesToReadBy({ access }: Entity, fields: readonly string[]): Role[] {
  return access.read.filter((role) => fields.every((field) => access.restricted?.[field]?.includes(role) ?? true));
}

/** A caller who may not read a field may not set it or filter by it. Throws `forbidden`. */
export function checkMentions(entity: Entity, caller: Roles, input: unknown): void {
  if (typeof input !== 'object' || input === null) return;
  const field = hiddenFields(entity, caller).find((hidden) => Object.hasOwn(input, hidden));
  if (field)
    throw new RowkeyError('forbidden', `"${field}" is restricted: no role of the token may set it or filter by it.`, {
      field,
    });
}

function notForCaller({ name }: Entity, roles: readonly Role[]): RowkeyError {
  return new RowkeyError('forbidden', `The request requires a role that may read ${name}; the token has none.`, {
    accepted: roles.length > 0 ? roles.join(', ') : 'no role',
  });
}
