import type { Entity } from '../declaration/entity.ts';
import { rolesToReadBy, rolesToSee } from '../places/readers.ts';

/** Errors of a model in which what one entity does or shows tells of another entity, which the role may not read. */

/**
 * The outcome of a write tells whether the other entity exists, so the roles that write must be able to read its field. If the
 * field identifies the entity (`isUnique`), the roles that create such entities learn as much from conflicts.
 */
export function* oracleErrors(
  what: string,
  {
    writer,
    seen,
    field,
    isUnique,
  }: { readonly writer: Entity; readonly seen: Entity; readonly field: string; readonly isUnique: boolean },
): Generator<string> {
  const informed = [...rolesToReadBy(seen, [field]), ...(isUnique ? seen.access.write : [])];
  const blind = writer.access.write.filter((role) => !informed.includes(role));
  if (blind.length > 0)
    yield `${what}, which would tell ${blind.join(', ')} what exists. Let roles that write "${writer.name}" read "${field}" of "${seen.name}".`;
}

/** A field that is made from another entity shows it, so the roles that see the field must be able to read that entity. */
export function* unreadableErrors(
  what: string,
  { entity, field, from }: { readonly entity: Entity; readonly field: string; readonly from: Entity },
): Generator<string> {
  const blind = new Set(rolesToSee(entity, field).filter((role) => !from.access.read.includes(role)));
  if (blind.size > 0)
    yield `${what}, which ${[...blind].join(', ')} may not read. Add these roles to access.read of "${from.name}", or remove them from the readers of "${field}" (access.restricted, access.own).`;
}
