import {
  canRead,
  type Entity,
  keyPath,
  type Model,
  type ReferenceDescription,
  type Roles,
  type Values,
} from './model.ts';

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
  const index = uniqueIndexOf(target, by);
  return index === undefined ? undefined : { index, key: { [by]: value } };
}

function uniqueIndexOf({ indexes }: Entity, field: string): string | undefined {
  const isOf = ({ of, fields, unique }: Entity['indexes'][string]) =>
    of === 'one' && unique && fields.length === 1 && fields[0] === field;
  return Object.entries(indexes).find(([, index]) => isOf(index))?.[0];
}

interface Source {
  readonly target: Entity;
  readonly reference: ReferenceDescription;
}

/**
 * The entity whose rows have the values of a field, if the caller may read it: the one to which the field refers, or for a field of the key
 * another one of which a field of the same name is the key or a unique index.
 */
export function sourceOf(
  { name, key, references }: Entity,
  field: string,
  { entities }: Model,
  user: Roles,
): Source | undefined {
  const declared = references[field];
  if (declared) {
    const target = entities.get(declared.to);
    return target && canRead(target, user) ? { target, reference: declared } : undefined;
  }
  if (!key.fields.includes(field)) return undefined;
  const isUnique = (one: Entity) => one.key.fields.join() === field || uniqueIndexOf(one, field) !== undefined;
  const target = [...entities.values()].find(
    (one) => one.name !== name && one.archiveOf === undefined && !one.series && canRead(one, user) && isUnique(one),
  );
  return target && { target, reference: { to: target.name, by: field } };
}
