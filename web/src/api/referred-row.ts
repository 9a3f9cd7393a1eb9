import { type Entity, keyPath, type ReferenceDescription, type Values } from './model.ts';

/** A key of the referred entity, or of its unique index. */
export interface ReferredRow {
  readonly index?: string;
  readonly key: Values;
}

/**
 * How to find the row to which a value of `others` refers: by its key, whose further fields are those of the same names in `others`,
 * or by a unique index. Undefined if neither is possible yet.
 */
export function referredRow(
  target: Entity,
  { by }: ReferenceDescription,
  value: string,
  others: Values,
): ReferredRow | undefined {
  const key = Object.fromEntries(target.key.fields.map((field) => [field, field === by ? value : others[field]]));
  if (Object.hasOwn(key, by) && keyPath(target, key).every((text) => text !== '')) return { key };
  const index = Object.entries(target.indexes).find(
    ([, { of, fields, unique }]) => of === 'one' && unique && fields.length === 1 && fields[0] === by,
  );
  return index && { index: index[0], key: { [by]: value } };
}
