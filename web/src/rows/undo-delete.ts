import { type Entity, type Roles, readsEveryField, type Values } from '../api/model.ts';

/**
 * Why a create with `values` would not restore a deleted row; undefined if it would, because nothing was deleted with the row and
 * the values are all that was stored. A read leaves out the groups of a split and restricted fields, and returns null for a field
 * that cannot be read.
 */
export function findUndoObstacle(entity: Entity, user: Roles, values: Values): string | undefined {
  const { children, attachments, archiveOf, split } = entity;
  if (children.length > 0) return `its children (${children.join(', ')}) are deleted with it`;
  const files = Object.keys(attachments).filter((field) => values[field] !== undefined);
  if (files.length > 0) return `its files (${files.join(', ')}) are deleted with it`;
  if (archiveOf !== undefined) return 'rows of an archive cannot be created';
  if (!readsEveryField(entity, user)) return 'your roles do not read all of its fields';
  if (Object.keys(split).length > 0) return 'some of its fields are stored apart from it';
  if (Object.values(values).includes(null)) return 'some of its values cannot be read';
  return undefined;
}
