import type { Alternative, Scalar, Term } from '../declaration/access.ts';
import type { Entity } from '../declaration/entity.ts';
import { type KeyTemplate, rangeOfPrefix } from '../keys/key-template.ts';
import { rolesToGrant } from '../places/readers.ts';
import { keepsExactly } from './validate-entity.ts';

/**
 * A field that is made from rows of another entity (a copy, a count) shows something of them. So whoever sees the field must be able to
 * read those rows: each way to see it implies a way to read them.
 */

/** A field of the entity, and the one of the other entity that has the same value in each row from which it is made. */
type SameField = readonly [field: string, other: string];

/** Where a caller with these roles sees a field: in the rows for which all terms hold. Several of them may compare one field. */
interface Sight {
  readonly roles: readonly string[];
  readonly terms: readonly (readonly [string, Term<Entity>])[];
}

interface Disclosure {
  readonly entity: Entity;
  readonly field: string;
  readonly from: Entity;
  /** As the keys lead from one to the other. */
  readonly same: readonly SameField[];
}

/** Yields an error if roles see the field that may not read what it is made from, and the declaration does not say that they may. */
export function* unreadableErrors(what: string, disclosure: Disclosure): Generator<string> {
  const { entity, field, from } = disclosure;
  if (entity.access.discloses?.includes(field)) return;
  const tooMuch = sightsOf(entity, field).filter((sight) => !isReadable(disclosure, sight));
  const isWithoutRole = ({ roles }: Sight) => !roles.some((role) => from.access.read.includes(role));
  const blind = rolesOf(tooMuch.filter(isWithoutRole));
  if (blind.length > 0)
    yield `${what}, which ${blind.join(', ')} may not read. Add these roles to access.read of "${from.name}", or remove them from the readers of "${field}" (access.restricted, access.own), or name "${field}" in access.discloses if they may know.`;
  const limited = rolesOf(tooMuch.filter((sight) => !isWithoutRole(sight)));
  if (limited.length > 0)
    yield `${what}, and the rules of "${from.name}" may hide from ${limited.join(', ')} what "${field}" shows. Give the rules to read "${entity.name}" the terms of those of "${from.name}", remove these roles from the readers of "${field}" (access.restricted, access.own), or name "${field}" in access.discloses if they may know.`;
}

function rolesOf(sights: readonly Sight[]): string[] {
  return [...new Set(sights.flatMap(({ roles: [role = ''] }) => role))];
}

/** A caller may read the row by one role, and the field by another. */
function sightsOf(entity: Entity, field: string): Sight[] {
  const { rules, read, restricted, unveiled, own } = entity.access;
  // A grant opens what the rules let the caller read, and without rules whatever is the caller's own.
  const rows = rules?.read ?? [...read, ...(own ? rolesToGrant(entity) : [])].map(toAlternative);
  const open = restricted?.[field];
  const readers = open && [...open.map(toAlternative), ...(unveiled?.[field] ?? [])];
  const toSight = (...all: Alternative<string, Entity>[]): Sight => ({
    roles: all.map(({ role }) => role),
    terms: all.flatMap(({ where = {} }) => Object.entries(where)),
  });
  return rows.flatMap((one) => (readers ? readers.map((alternative) => toSight(one, alternative)) : [toSight(one)]));
}

function toAlternative(role: string): Alternative<string, Entity> {
  return { role };
}

/** True if an alternative of the other entity holds for each row that is behind the field. */
function isReadable({ entity, from, same }: Disclosure, { roles, terms }: Sight): boolean {
  const rule = from.access.rules?.read ?? from.access.read.map(toAlternative);
  const isImplied = ([other, needed]: readonly [string, Term<Entity>]) =>
    terms.some(([field, term]) => {
      const isSame = same.some(([one, another]) => one === field && another === other);
      return isSame && implies({ entity, field, term }, { entity: from, field: other, term: needed });
    });
  return rule.some(({ role, where = {} }) => roles.includes(role) && Object.entries(where).every(isImplied));
}

interface Compared {
  readonly entity: Entity;
  readonly field: string;
  readonly term: Term<Entity>;
}

/** True if, for every caller, a value for which the one term holds is a value for which the other one holds. Both fields are of one type. */
export function implies(one: Compared, other: Compared): boolean {
  const [given, needed] = [one.term, other.term];
  const values = valuesOf(given);
  if (values) return values.every((value) => holdsFor(needed, value));
  if (typeof given !== 'object' || typeof needed !== 'object') return false;
  switch (needed.is) {
    case 'one of':
      return false;
    case 'prefix':
      return given.is === 'prefix' && given.prefix.startsWith(needed.prefix);
    case 'between':
      return isBetween(boundsOf(given), needed);
    case 'subject':
      return given.is === 'subject';
    case 'claim':
      // The schema of each field normalizes the claim.
      return given.is === 'claim' && given.claim === needed.claim && normalizeAlike(one, other);
    case 'own':
      return (
        given.is === 'own' &&
        (given.of ?? one.entity) === (needed.of ?? other.entity) &&
        (given.field ?? one.field) === (needed.field ?? other.field)
      );
    case 'member':
      return (
        given.is === 'member' &&
        given.of === needed.of &&
        given.field === needed.field &&
        Object.entries(needed.where).every(([field, value]) => given.where[field] === value)
      );
  }
}

/** All values of a term; undefined if they depend on the caller or are too many. */
function valuesOf(term: Term<Entity>): readonly Scalar[] | undefined {
  if (typeof term !== 'object') return [term];
  return term.is === 'one of' ? term.values : undefined;
}

/** True if the term holds for the value, whoever asks. */
function holdsFor(term: Term<Entity>, value: Scalar): boolean {
  if (typeof term !== 'object') return term === value;
  if (term.is === 'one of') return term.values.includes(value);
  if (term.is === 'prefix') return typeof value === 'string' && value.startsWith(term.prefix);
  return term.is === 'between' && isBetween({ from: value, to: value }, term);
}

interface Bounds {
  readonly from: Scalar;
  readonly to: Scalar;
}

function boundsOf(term: Exclude<Term<Entity>, Scalar>): Bounds | undefined {
  if (term.is === 'between') return term;
  if (term.is !== 'prefix') return undefined;
  const { from, before } = rangeOfPrefix(term.prefix);
  return before === undefined ? undefined : { from, to: before };
}

function isBetween(bounds: Bounds | undefined, { from, to }: Bounds): boolean {
  return bounds !== undefined && typeof bounds.from === typeof from && from <= bounds.from && bounds.to <= to;
}

function normalizeAlike({ entity, field }: Compared, other: Compared): boolean {
  return (
    entity.schema.shape[field] === other.entity.schema.shape[other.field] ||
    (keepsExactly(entity, field) && keepsExactly(other.entity, other.field))
  );
}

/** The pairs of fields whose values are the same, because both are in the text of one key. */
export function sameFields(
  entity: Entity,
  from: Entity,
  keys: readonly KeyTemplate[],
  nameOf: (other: string) => string = (other) => other,
): SameField[] {
  return keys
    .flatMap(exactFields)
    .map((other) => [nameOf(other), other] as const)
    .filter(([field, other]) => entity.columns[field] !== undefined && entity.columns[field] === from.columns[other]);
}

/** The fields of which a key has the whole value. Two instants of one key may be different texts. */
function exactFields({ parts }: KeyTemplate): string[] {
  return parts
    .filter(({ hash, unit, newestFirst, each }) => !(hash || unit || newestFirst || each))
    .map(({ field }) => field);
}
