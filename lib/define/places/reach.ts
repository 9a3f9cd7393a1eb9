import { type Action, type Alternative, hasTerms, type Rules, type Term } from '../declaration/access.ts';
import type { DeclaredEntity } from '../declaration/declaration.ts';
import type { Entity } from '../declaration/entity.ts';
import type { CopyIndex, Index } from '../declaration/indexes.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import { copiedFields, isOfMany } from './index-range.ts';
import { rolesToReadIndex } from './readers.ts';

/** What rules on rows reach: which roles may do what, and which lists the terms of a rule bound. */

type Ruled = Pick<DeclaredEntity, 'access'>;
type AnyAlternative = Alternative<string, unknown>;

/** The roles that may do this to at least some rows. */
export function rolesTo({ access }: Ruled, action: Action): string[] {
  const { rules, read, write } = access;
  if (!rules) return [...(action === 'read' ? read : write)];
  return [...new Set(rules[action].map(({ role }) => role))];
}

/** True if a role reaches only some rows by this. */
export function hasRowRules({ access: { rules } }: Ruled, action: Action): boolean {
  return rules?.[action].some(hasTerms) ?? false;
}

/** A list in the order of keys: of an entity, or of one of its indexes. */
interface ListKey {
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The fields that the list has; undefined if it has all. */
  readonly fields: readonly string[] | undefined;
  /** True if each row of the list may lead to the row of an entity, which is then read. */
  readonly hasLookups: boolean;
}

function listKeyOf(entity: Entity, index: Index | undefined): ListKey {
  if (!index) return { partition: entity.partition, row: entity.row, fields: undefined, hasLookups: false };
  const { partition } = index.remote ?? entity;
  const hasLookups = index.kind === 'index-entity' || index.copies === 'keys';
  return { partition, row: index.row, fields: copiedFields(entity, index), hasLookups };
}

/** The alternatives with which a list is read: of the entity, or of an index. */
export function listingAlternatives(entity: Entity, index?: Index): Rules<string, Entity>['read'] {
  const rule = entity.access.rules?.read ?? [];
  const list = listKeyOf(entity, index);
  return rule.filter((alternative) => isOpen(alternative, list));
}

/** The roles that may read a list of the entity, or of one of its indexes. */
export function rolesToList(entity: Entity, index?: Index): string[] {
  if (!entity.access.rules) return [...entity.access.read];
  return [...new Set(listingAlternatives(entity, index).map(({ role }) => role))];
}

/** The roles that may read through an index, which also reveals its fields. */
export function rolesToReadThrough(entity: Entity, index: Index): string[] {
  if (isOfMany(entity, index)) return rolesToListThrough(entity, index);
  const roles = rolesToReadIndex(entity, index);
  const open = entity.access.rules ? rolesTo(entity, 'read') : roles;
  return roles.filter((role) => open.includes(role));
}

/** The roles that may read a range of an index: also of a unique one, of which each value is one entity. */
export function rolesToListThrough(entity: Entity, index: Index): string[] {
  const roles = rolesToReadIndex(entity, index);
  const open = entity.access.rules ? rolesToList(entity, index) : roles;
  return roles.filter((role) => open.includes(role));
}

function isOpen(alternative: AnyAlternative, { fields, hasLookups, ...key }: ListKey): boolean {
  const { where = {}, lists = 'bounded' } = alternative;
  if (!hasTerms(alternative)) return true;
  if (lists === 'none' || Object.keys(where).some((field) => fields?.includes(field) === false)) return false;
  // The number of lookups would tell of rows that are left out, so there must be none.
  if (hasLookups) return Object.entries(where).every((term) => isFixed(term, key.partition));
  return lists === 'filtered' || isBounded(where, key);
}

function isFixed([field, term]: readonly [string, Term<unknown> | undefined], { fields }: KeyTemplate): boolean {
  return term !== undefined && fields.includes(field) && isEquality(term);
}

/** True if terms fix the whole partition key, or the beginning of the row key. */
function isBounded(
  where: Readonly<Record<string, Term<unknown>>>,
  { partition, row }: Pick<ListKey, 'partition' | 'row'>,
): boolean {
  const fixed = Object.entries(where).filter((term) => isFixed(term, partition));
  if (fixed.length > 0 && fixed.length === partition.fields.length) return true;
  const [first] = row.parts;
  return first !== undefined && !first.hash && Object.hasOwn(where, first.field);
}

function isEquality(term: Term<unknown> | undefined): boolean {
  return typeof term !== 'object' || (term.is !== 'prefix' && term.is !== 'between');
}

export interface PlaceOfMine {
  /** The index that is read; undefined for the entity's own key. */
  readonly name: string | undefined;
  /** The fields of its partition key, which the terms of the roles fix. */
  readonly fields: readonly string[];
  readonly roles: readonly string[];
}

/**
 * The lists whose partitions follow from the rules of some roles: that of the key, and of each index with whole entities.
 * That of the most roles comes first.
 */
export function placesOfMine(entity: Entity): PlaceOfMine[] {
  const limited = entity.access.rules?.read.filter((one) => hasTerms(one) && one.lists !== 'none') ?? [];
  if (entity.series) return [];
  const whole = Object.entries(entity.indexes).filter(
    ([, index]) => index.kind === 'inter-partition' && index.copies === 'everything' && !index.when && !index.unique,
  );
  const places = [[undefined, undefined] as const, ...whole].map(([name, index]): PlaceOfMine => {
    const { partition } = index?.remote ?? entity;
    const isNamed = ({ where }: AnyAlternative) =>
      partition.fields.every((field) => isFixed([field, where?.[field]], partition));
    const readers = index ? rolesToReadThrough(entity, index) : rolesToList(entity);
    const roles = readers.filter((role) => {
      const own = limited.filter((one) => one.role === role);
      return own.length > 0 && own.every((one) => isOpen(one, listKeyOf(entity, index)) && isNamed(one));
    });
    return { name, fields: partition.fields, roles };
  });
  return places
    .filter(({ fields, roles }) => fields.length > 0 && roles.length > 0)
    .toSorted((one, other) => other.roles.length - one.roles.length);
}

/** How the memberships of one caller are found: by the key of the members, or by an index. */
interface Memberships {
  /** The field with the caller's subject. */
  readonly of: string;
  /** Undefined for the key. */
  readonly index: CopyIndex | undefined;
}

/** The other field of the key of the members; undefined unless the key has these two. */
export function memberField({ keyFields }: Pick<DeclaredEntity, 'keyFields'>, field: string): string | undefined {
  const [other, ...more] = keyFields.filter((name) => name !== field);
  return keyFields.includes(field) && more.length === 0 ? other : undefined;
}

/** A partition that has all memberships of a caller, with these fields; undefined if there is none. */
export function membershipsIn(entity: Entity, field: string, needed: readonly string[]): Memberships | undefined {
  const of = memberField(entity, field);
  if (of === undefined) return undefined;
  const isOfCaller = ({ fields, parts }: KeyTemplate) => fields.join() === of && parts.every(({ each }) => !each);
  if (isOfCaller(entity.partition)) return { of, index: undefined };
  const index = Object.values(entity.indexes)
    // A row with keys alone would cost a read of each member.
    .filter((one): one is CopyIndex => one.kind !== 'index-entity' && !one.when && one.copies !== 'keys')
    .filter((one) => needed.every((name) => copiedFields(entity, one)?.includes(name) ?? true))
    .find(({ remote }) => remote && isOfCaller(remote.partition));
  return index && { of, index };
}
