import { canReadWhole, type Entity, type Roles, type Values } from '../api/model.ts';

/**
 * True if a create with `values` restores a deleted row: nothing was deleted with the row, and the values are all that was stored.
 * A read leaves out the groups of a split and restricted fields, and returns null for a field that cannot be read.
 */
export function canUndoDelete(entity: Entity, user: Roles, values: Values): boolean {
  const { children, attachments, archiveOf, split } = entity;
  const isAlone = children.length === 0 && Object.keys(attachments).length === 0 && archiveOf === undefined;
  const isWhole = Object.keys(split).length === 0 && canReadWhole(entity, user);
  return isAlone && isWhole && !Object.values(values).includes(null);
}
