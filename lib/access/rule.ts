import { RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import { type Action, hasTerms } from '../define/declaration/access.ts';
import { type Entity, withArchives } from '../define/declaration/entity.ts';
import type { Caller } from './token.ts';

/**
 * The declaration alone decides what a caller may read and write. Every route checks it here:
 *
 * - The roles of `access.read` see an entity, without the fields of `access.restricted` that none of the caller's roles may
 *   read. A role that may only write gets the key and the ETag of the entity it wrote, or no body.
 * - Only a caller who may read the whole entity sees keys of its rows and index rows. These keys contain fields, also in
 *   the audit log, in findings and in the text of messages.
 * - Writing a restricted field or filtering by it requires a role that may read the field.
 */

type Roles = Pick<Caller, 'roles'>;

export function canRead({ access }: Entity, { roles }: Roles): boolean {
  return access.read.some((role) => roles.includes(role));
}

/** Throws `forbidden` unless the caller may write the children of an entity, which are deleted, archived and moved with it. */
export function requireWriter({ name }: Entity, child: Entity, caller: Roles): void {
  if (child.access.write.some((role) => caller.roles.includes(role))) return;
  throw new RowkeyError(
    'forbidden',
    `A delete, archive or move of ${name} includes its ${child.name}; no role of the token may write ${child.name}.`,
    { accepted: child.access.write.join(', ') },
  );
}

/** By the list of roles, which a caller has as long as the token is remembered. */
const hiddenByRoles = onceFor((_: Entity['access']) => new WeakMap<Roles['roles'], readonly string[]>());

/** The restricted fields that none of the caller's roles may read. */
export function hiddenFields({ access }: Entity, { roles }: Roles): readonly string[] {
  const known = hiddenByRoles(access);
  const found = known.get(roles);
  if (found) return found;
  const hidden = Object.entries(access.restricted ?? {}).flatMap(([field, allowed]) =>
    allowed?.some((role) => roles.includes(role)) ? [] : [field],
  );
  known.set(roles, hidden);
  return hidden;
}

/** True if the caller may read every row of the entity with all its fields. */
export function canReadWhole(entity: Entity, caller: Roles): boolean {
  return canReadAll(entity, caller) && hiddenFields(entity, caller).length === 0;
}

/** True if no rule limits the caller to some rows. */
function canReadAll(entity: Entity, caller: Roles): boolean {
  const { rules } = entity.access;
  if (!rules) return canRead(entity, caller);
  return rules.read.some((one) => !hasTerms(one) && caller.roles.includes(one.role));
}

/**
 * True if the caller may see keys of the entity with this name outside of its own routes: in messages, which also name entities that copy
 * from it, and in the audit log. Keys of an entity that is not declared, or of an unknown one, are for a caller who may read everything.
 */
export function canReadKeys(entities: readonly Entity[], name: string | undefined, caller: Roles): boolean {
  const all = withArchives(entities);
  const about = all.find((entity) => entity.name === name);
  const named = about ? [about, ...receiversOf(about)] : all;
  return named.every((entity) => canReadWhole(entity, caller));
}

/** The entities to which the queue copies from this one. */
function receiversOf({ dependents }: Entity): Entity[] {
  return dependents.filter(({ fanOut }) => fanOut).map(({ target }) => target());
}

/** True if the caller reads and writes every row of the entity, each read of which is in the audit log. */
export function isSteward({ access: { steward } }: Entity, { roles }: Roles): boolean {
  return steward !== undefined && roles.includes(steward);
}

/** True if a role may write the entity without reading it. */
export function hasWriteOnlyRoles({ access }: Entity): boolean {
  return access.write.some((role) => !access.read.includes(role));
}

/** Throws `forbidden` unless the caller has one of the roles. `closed` says why there is none. */
export function requireRole(caller: Roles, roles: readonly string[], closed?: string): void {
  for (const role of roles) if (caller.roles.includes(role)) return;
  if (closed !== undefined || roles.length === 0)
    throw new RowkeyError(
      'forbidden',
      closed ?? 'No role of the model may do this. Name one in access of the entity, or do it in an operation.',
    );
  const accepted = roles.join(', ');
  throw new RowkeyError(
    'forbidden',
    `The request requires one of these roles: ${accepted}; the token has none of them.`,
    { accepted },
  );
}

/** The roles that read every row, for the error of a caller whom rules limit. */
export function nameAllReaders(entity: Entity): string {
  return nameRoles(
    entity,
    entity.access.read.filter((role) => canReadAll(entity, { roles: [role] })),
  );
}

/** The roles that write every row in each of these ways, for the error of a caller whom rules limit. */
export function nameAllWriters(entity: Entity, actions: readonly Action[]): string {
  const { rules, write } = entity.access;
  const reachesAll = (role: string) =>
    actions.every((action) => rules?.[action].some((one) => one.role === role && !hasTerms(one)) ?? true);
  return nameRoles(entity, write.filter(reachesAll));
}

/** Without roles, says what to declare. */
function nameRoles({ name, access: { steward, restricted } }: Entity, roles: readonly string[]): string {
  if (roles.length > 0) return roles.join(', ');
  const unlimited = 'a role that no rule on rows limits: the model declares none';
  if (steward !== undefined) return `${unlimited}. Name ${steward} in every field of access.restricted of ${name}`;
  return `${unlimited}. Declare one as steward of defineModel${restricted ? ', and name it in access.restricted' : ''}`;
}

/** Throws `forbidden` unless the caller may read the entity. */
export function requireReader(entity: Entity, caller: Roles): void {
  if (!canRead(entity, caller)) throw createRoleError(entity.name, entity.access.read.join(', '));
}

/** Throws `forbidden` unless the caller may read every row of the entity with all its fields. */
export function requireWholeReader(entity: Entity, caller: Roles): void {
  if (canReadWhole(entity, caller)) return;
  // The caller may have others, which read some rows or fields.
  const enough = entity.access.read.filter((role) => canReadWhole(entity, { roles: [role] }));
  throw createRoleError(`every row of ${entity.name} with all its fields`, nameRoles(entity, enough));
}

/**
 * Throws `forbidden` if `input` has a field that the caller may not read. Such a field can be neither set nor used as a
 * filter.
 */
export function checkMentions(entity: Entity, caller: Roles, input: unknown): void {
  if (typeof input === 'object' && input !== null) requireFields(entity, caller, Object.keys(input));
}

/** Throws `forbidden` for a field that the caller may not read. */
export function requireFields(entity: Entity, caller: Roles, fields: readonly string[]): void {
  const field = hiddenFields(entity, caller).find((hidden) => fields.includes(hidden));
  if (field)
    throw new RowkeyError('forbidden', `"${field}" is restricted: no role of the token may set it or filter by it.`, {
      field,
    });
}

function createRoleError(what: string, accepted: string): RowkeyError {
  return new RowkeyError('forbidden', `The request requires a role that may read ${what}; the token has none.`, {
    accepted,
  });
}
