import { pick, type Values } from '../../base/values.ts';
import type { Entity, Reference } from '../declaration/entity.ts';
import { buildKey, type KeyTemplate, keyRange } from '../keys/key-template.ts';
import { isOptional } from '../schema/field-schema.ts';

/** A field of one entity that contains a field of another one. */
export type Relation = Pick<Reference, 'from' | 'field' | 'to' | 'by'>;

/** The key fields of the other entity besides the one that the field contains. */
export function otherKeyFields({ to, by }: Relation): readonly string[] {
  return to.keyFields.filter((field) => field !== by);
}

/** The other key fields if the referring entity has them all, so that its values give the whole key. */
function givenKeyFields(relation: Relation): readonly string[] | undefined {
  const { columns } = relation.from();
  const others = otherKeyFields(relation);
  const isGiven = relation.to.keyFields.includes(relation.by) && others.every((field) => Object.hasOwn(columns, field));
  return isGiven ? others : undefined;
}

/** True if the values of the referring entity give the whole key of the other one. */
export function isByKey(relation: Relation): boolean {
  return givenKeyFields(relation) !== undefined;
}

/** The fields of the referring entity that decide to which entity it refers. */
export function referringFields(relation: Relation): string[] {
  return [relation.field, ...(givenKeyFields(relation) ?? [])];
}

/** The fields of the other entity that the values of the referring one give; undefined without a reference. */
export function keyIn(relation: Relation, values: Values | undefined): Values | undefined {
  const { field, by } = relation;
  if (values?.[field] === undefined || values[field] === null) return undefined;
  return { ...pick(values, givenKeyFields(relation) ?? []), [by]: values[field] };
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

/** A range of keys that contains every entity with given values of some fields: its own rows, or the rows of an index. */
interface Lookup {
  /** Undefined for the entity's own key. */
  readonly index: string | undefined;
  /** True for an index that changes after the transaction of its entity. */
  readonly isRemote: boolean;
  /** True for an index whose entries the queue function writes after the writer has returned. */
  readonly isLeftToQueue: boolean;
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
}

/**
 * The best way to find all entities with given values of `fields` by one range query: by the entity's own key, by an index in
 * its partition, or by one in another partition, if possible one that its writer settles. Undefined if none has the fields first in
 * its keys, or has every entity.
 */
export function lookupBy(entity: Entity, fields: readonly string[]): Lookup | undefined {
  const { table, partition, row, indexes } = entity;
  const own: Lookup = { index: undefined, isRemote: false, isLeftToQueue: false, table, partition, row };
  // A list names entities of several values, and a condition leaves entities out.
  const copies = Object.entries(indexes).flatMap(([index, declared]): Lookup[] =>
    declared.kind === 'index-entity' || declared.when
      ? []
      : [
          {
            index,
            isRemote: declared.remote !== undefined,
            isLeftToQueue: declared.kind === 'inter-partition' && declared.settle === 'queue',
            ...(declared.remote ?? { table, partition }),
            row: declared.row,
          },
        ],
  );
  const delay = ({ isRemote, isLeftToQueue }: Lookup) => Number(isRemote) + Number(isLeftToQueue);
  const fastest = copies.toSorted((one, other) => delay(one) - delay(other));
  return [own, ...fastest].find((lookup) => hasFirst(entity, lookup, fields));
}

function hasFirst({ schema, derived, keyFields }: Entity, { partition, row }: Lookup, fields: readonly string[]) {
  const all = [...partition.parts, ...row.parts];
  const isGiven = (field: string) => fields.includes(field);
  const isAlways = (field: string) => keyFields.includes(field) || !(field in derived || isOptional(schema, field));
  if (all.some(({ each }) => each) || !partition.fields.every(isGiven)) return false;
  // An entity without a field of the key is not in the index.
  if (!all.every(({ field }) => isGiven(field) || isAlways(field))) return false;
  const open = row.parts.findIndex(({ field }) => !isGiven(field));
  const first = row.parts.slice(0, open < 0 ? row.parts.length : open);
  const readable = [...partition.readable, ...first.filter(({ hash }) => !hash).map(({ field }) => field)];
  return fields.every((field) => readable.includes(field));
}
