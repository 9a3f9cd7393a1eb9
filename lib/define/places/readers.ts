import type { DeclaredEntity } from '../declaration/declaration.ts';
import type { Entity } from '../declaration/entity.ts';
import type { Index } from '../declaration/indexes.ts';

/** What the declared roles may read. The routes check it, and whatever the engine computes for a field may use only what its readers see. */

type Readable = Pick<DeclaredEntity, 'access'>;

/** The roles that may read all of these fields. Reading by a field reveals it, so an index requires all its fields. */
export function rolesToReadBy({ access }: Readable, fields: readonly string[]): string[] {
  return access.read.filter((role) => fields.every((field) => access.restricted?.[field]?.includes(role) ?? true));
}

/**
 * The roles that may read an index. An entity is in the index only if it has all fields of the keys, and the order of a list reveals those of
 * the row key and of the members.
 */
export function rolesToReadIndex(entity: Readable, index: Index): string[] {
  const { remote, row } = index;
  const members = index.kind === 'index-entity' ? index.holds.fields : [];
  return rolesToReadBy(entity, [...(remote?.partition.fields ?? []), ...row.fields, ...members]);
}

/** The roles that may request grants for the caller's own rows: those that may read the entity by which the caller is known, but a steward. */
export function rolesToGrant({ access: { own, read, steward } }: Readable): readonly string[] {
  const readers = own && 'through' in own ? own.through.access.read : read;
  return withoutSteward(readers, steward);
}

/** The roles that get signatures of storage, of those that may do the same through the API; those by which a steward is a user. */
export function withoutSteward(roles: readonly string[], steward: string | undefined): readonly string[] {
  return steward === undefined ? roles : roles.filter((role) => role !== steward);
}

/** The roles that read a field in at least some rows. The caller may read the row of a restricted field by another role. */
export function rolesToReadIn({ access: { read, restricted, unveiled } }: Readable, field: string): readonly string[] {
  const always = restricted?.[field];
  return always ? [...always, ...(unveiled?.[field]?.map(({ role }) => role) ?? [])] : read;
}

/** The roles that may see a field: those that read it, and those that get grants, which open no row with a field that is hidden from the caller. */
export function rolesToSee(entity: Entity, field: string): string[] {
  const { own, restricted } = entity.access;
  return [...rolesToReadIn(entity, field), ...(own && !restricted?.[field] ? rolesToGrant(entity) : [])];
}

/**
 * The fields from which nothing may be computed that these roles see: those that one of the roles may not read, and encrypted ones, whose
 * plaintext must not be stored.
 */
export function fieldsHiddenFrom(
  roles: readonly string[],
  { access, encrypted }: Pick<DeclaredEntity, 'access' | 'encrypted'>,
): string[] {
  const restricted = Object.entries<readonly string[] | undefined>(access.restricted ?? {});
  const hidden = restricted.filter(([, readers]) => !roles.every((role) => readers?.includes(role)));
  return [...hidden.map(([field]) => field), ...encrypted];
}
