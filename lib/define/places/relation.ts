import { pick, type Values } from '../../base/values.ts';
import type { Entity } from '../declaration/entity.ts';
import { buildKey, keyRange } from '../keys/key-template.ts';
import { type Lookup, lookupBy } from './lookup.ts';

/** A field of one entity that contains a field of another one. */
export interface Relation {
  readonly from: () => Entity;
  readonly field: string;
  readonly to: Entity;
  readonly by: string;
}

/** The key fields of the other entity besides the one that the field contains. */
export function otherKeyFields({ to, by }: Relation): readonly string[] {
  return to.keyFields.filter((field) => field !== by);
}

/** True if the values of the referring entity give the whole key of the other one. */
export function isByKey(relation: Relation): boolean {
  const { columns } = relation.from();
  return (
    relation.to.keyFields.includes(relation.by) &&
    otherKeyFields(relation).every((field) => Object.hasOwn(columns, field))
  );
}

/** The fields of the referring entity that decide to which entity it refers. */
export function referringFields(relation: Relation): string[] {
  return [relation.field, ...(isByKey(relation) ? otherKeyFields(relation) : [])];
}

/** The fields of the other entity that the values of the referring one give; undefined without a reference. */
export function keyIn(relation: Relation, values: Values | undefined): Values | undefined {
  const { field, by } = relation;
  if (values?.[field] === undefined || values[field] === null) return undefined;
  return { ...(isByKey(relation) ? pick(values, otherKeyFields(relation)) : {}), [by]: values[field] };
}

/** The range of all rows that lead to entities whose `keyIn` is `key`; undefined if no key or index has such a range. */
export function referrersRange(relation: Relation, key: Values) {
  const { field, by } = relation;
  const lookup: Lookup | undefined = lookupBy(relation.from(), referringFields(relation));
  if (!lookup) return undefined;
  const { table, index } = lookup;
  const given = { ...pick(key, otherKeyFields(relation)), [field]: key[by] };
  return { index, table, partition: buildKey(lookup.partition, given), ...keyRange(lookup.row, {}, given) };
}
