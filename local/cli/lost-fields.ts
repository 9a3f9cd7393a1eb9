import type { Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';

/** A row without its key, or of an unknown kind, is no entity: fields that are stored may not have been returned. */
export function listLost({ keyFields, decidedFields, union, schema }: Entity, values: Values): string[] {
  const lost = keyFields.filter((field) => values[field] === undefined && !decidedFields.includes(field));
  const isOfNoKind = union !== undefined && !schema.pick({ kind: true }).safeParse({ kind: values.kind }).success;
  return isOfNoKind ? [...lost, 'kind'] : lost;
}
