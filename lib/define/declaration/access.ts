import { z } from 'zod';
import { mapValues } from '../../base/values.ts';
import { anything, byName, declaredEntity, optionsOf } from '../schema/options.ts';

/**
 * Who may read and write an entity: roles, and rules that limit a role to some rows. A rule is a list of alternatives of terms that all
 * hold. There is no negation, no join and no code, so a rule can be compiled to keys, to filters and to a signature.
 */

export type Scalar = string | number | boolean;

/** The default of `rulesMaxAge` of a model, in seconds. */
export const RULES_MAX_AGE_S = 30;

/** What the terms of a rule need of another declaration, or of a function that returns it. */
interface Named {
  readonly name: string;
  readonly schema: z.ZodObject;
}
export type Declared = Named | (() => Named);

/** The claims by which the issuer states that another claim is verified, with their accepted values: see `ClaimOwner`. */
type VerifiedBy = Readonly<Record<string, readonly Scalar[]>>;

/** What a field of a row must be. `Of` is how an entity is named: in a declaration or in a model. */
export type Term<Of = Declared> =
  | Scalar
  | { readonly is: 'one of'; readonly values: readonly Scalar[] }
  | { readonly is: 'prefix'; readonly prefix: string }
  | { readonly is: 'between'; readonly from: Scalar; readonly to: Scalar }
  | { readonly is: 'subject' }
  | { readonly is: 'claim'; readonly claim: string; readonly verifiedBy?: VerifiedBy | undefined }
  | { readonly is: 'own'; readonly of: Of | undefined; readonly field: string | undefined }
  | {
      readonly is: 'member';
      readonly of: Of;
      readonly field: string;
      readonly where: Readonly<Record<string, Scalar>>;
    };

/** A term that is one value of the caller. */
type SetTerm = Extract<Term, { is: 'subject' | 'claim' }>;

/** The rows that a role reaches. */
interface DeclaredAlternative<Role extends string = string, Of = Declared> {
  /** The role that the alternative is for. */
  readonly role: Role;
  /** The terms by field. All of them hold. */
  readonly where?: Readonly<Record<string, Term<Of>>>;
  /**
   * Which lists the role may read. `bounded`, the default: those of which the terms fix the partition, or the beginning of the row key.
   * `filtered`: all; storage then reads the whole partition that the caller names, and leaves the other rows out. `none`: none, only single entities.
   */
  readonly lists?: 'bounded' | 'filtered' | 'none';
}

/** The compiled form. */
export interface Alternative<Role extends string = string, Of = Declared> extends DeclaredAlternative<Role, Of> {
  /** The transition to whose side it belongs. */
  readonly transition?: { readonly number: number; readonly side: 'before' | 'after' };
}

/** A role without terms reaches every row. */
type Rule<Role extends string = string> = readonly (Role | DeclaredAlternative<Role>)[];

/** A change of a row for which one rule holds before, and another one after it. */
interface Transition<Role extends string = string> {
  readonly before: Rule<Role>;
  readonly after: Rule<Role>;
}

/** Its roles and alternatives hold before and after a change. */
type UpdateRule<Role extends string = string> =
  | Transition<Role>
  | readonly (Role | DeclaredAlternative<Role> | Transition<Role>)[];

export const WRITES = ['create', 'update', 'delete'] as const;
type Write = (typeof WRITES)[number];
/** What a caller does with a row. */
export const ACTIONS = ['read', ...WRITES] as const;
export type Action = (typeof ACTIONS)[number];

/** How `access` is declared. */
export interface AccessDeclaration<Field extends string = string, Role extends string = string, Through = Named> {
  /** Who may read: roles, each alone for every row, or with `where` for some rows. */
  readonly read: Rule<Role>;
  /** One rule for all writes, or one for each kind. */
  readonly write:
    | Rule<Role>
    | { readonly create?: Rule<Role>; readonly update?: UpdateRule<Role>; readonly delete?: Rule<Role> };
  /**
   * Fields that a create takes from the caller: `subject()`, or a claim with one value. A caller can neither give another value nor change
   * the field later. The app itself can.
   */
  readonly set?: Partial<Readonly<Record<Field, Term>>>;
  /** Fields that only these roles may read. With terms, a role may read the field in these rows, and cannot set it or filter by it. */
  readonly restricted?: Partial<Readonly<Record<Field, Rule>>>;
  /** Copies and counts that show something of other entities to all who read the field, also of rows that they may not read. */
  readonly discloses?: readonly Field[];
  /**
   * How the caller's own entities are found. Either one entity, by a claim of the token such as `oid` or `sub` and this
   * unique index of one field. Or all entities of the partition that the caller's entity of `through` leads to;
   * `permissions` (of `raud`) limits what a grant may allow on them.
   */
  readonly own?: ClaimOwner | GrantedPartition<Through>;
}

/** The compiled form. */
export interface Access<Field extends string = string, Role extends string = string, Through = Named, Of = Declared>
  extends Pick<AccessDeclaration<Field, Role, Through>, 'own' | 'discloses'> {
  readonly set?: Readonly<Record<string, SetTerm>>;
  /** The roles that may read, and those that may write, at least some rows. */
  readonly read: readonly Role[];
  readonly write: readonly Role[];
  /** Fields that only these roles may read, in every row. */
  readonly restricted?: Partial<Readonly<Record<Field, readonly string[]>>>;
  /** By the restricted field, the rows in which further roles may read it. */
  readonly unveiled?: Readonly<Record<string, readonly Alternative<string, Of>[]>>;
  /** Set if a role reaches some rows only, or not by every kind of write. */
  readonly rules?: Rules<Role, Of>;
  /** The role of the model that reads and writes every row: see `withSteward`. */
  readonly steward?: string;
}

export type Rules<Role extends string = string, Of = Declared> = {
  readonly [Each in Action]: readonly Alternative<Role, Of>[];
};

interface GrantedPartition<Through = Named> {
  readonly through: Through;
  readonly permissions: string;
}

export interface ClaimOwner {
  /** A claim of the token with a text value. */
  readonly claim: string;
  /** The unique index whose only field has the value of the claim. */
  readonly index: string;
  /**
   * The claims by which the issuer states that the value is verified, with their accepted values. The first of these claims
   * that a token has decides; without any, the value is ignored. With `{}`, every value of the issuer counts. Required for
   * all claims except `oid` and `sub`, which nobody can choose: some issuers let users enter the email address of another
   * person.
   */
  readonly verifiedBy?: VerifiedBy;
}

type OptionsOf<Options> = Record<keyof NonNullable<Options>, z.ZodType>;

/** A value, or what the functions below return. `defineModel` checks the form, and can name the role and the field: see malformed-terms.ts. */
const term = anything<Term>();
const alternative = z.union([
  z.string(),
  optionsOf({
    role: z.string(),
    where: z.record(z.string(), term).optional(),
    lists: z.enum(['bounded', 'filtered', 'none']).optional(),
  } satisfies OptionsOf<DeclaredAlternative>).refine((one) => !('where' in one) || hasTerms(one), {
    error: 'it has no terms, so the role would reach every row. Name a term, or the role alone',
    path: ['where'],
  }),
]);
const rule = z.array(alternative).readonly();
const transition = optionsOf({ before: rule.optional(), after: rule.optional() } satisfies OptionsOf<Transition>)
  .refine(({ before, after }) => before && after, {
    error: 'a change needs the rule before it and the one after it. Give both, before and after',
  })
  .refine(
    ({ before = [], after = [] }) => [...before, ...after].some((one) => typeof one === 'object' && hasTerms(one)),
    {
      error: 'a change without terms is every change. Name a term in before or after, or the roles alone',
    },
  );

export const AccessOptions = optionsOf({
  read: rule,
  write: z.union([
    rule,
    optionsOf({
      create: rule.optional(),
      update: z.union([z.array(z.union([alternative, transition])).readonly(), transition]).optional(),
      delete: rule.optional(),
    } satisfies OptionsOf<Record<Write, unknown>>),
  ]),
  set: z
    .record(
      z.string(),
      z
        .custom<SetTerm>((given) => given === undefined || ['subject', 'claim'].includes(Object(given).is), {
          error: 'needs subject() or a claim of defineClaims',
        })
        .optional(),
    )
    .optional(),
  restricted: z.record(z.string(), rule.optional()).optional(),
  discloses: z.array(z.string()).readonly().optional(),
  own: optionsOf({
    claim: z.string().optional(),
    index: z.string().optional(),
    verifiedBy: byName.optional(),
    through: declaredEntity().optional(),
    permissions: z.string().optional(),
  } satisfies OptionsOf<ClaimOwner & GrantedPartition>)
    .refine(
      ({ claim, index, through, permissions }) =>
        through === undefined
          ? claim !== undefined && index !== undefined && permissions === undefined
          : permissions !== undefined && claim === undefined && index === undefined,
      { error: 'claim and index are accepted, or through and permissions' },
    )
    .optional(),
} satisfies OptionsOf<AccessDeclaration>);

export const TransitionSide = z
  .object({
    number: z.int().describe('An update is allowed if an alternative of each side of one number holds'),
    side: z.enum(['before', 'after']),
  })
  .meta({ title: 'transition-side' });

const AlternativeDescription = z.object({
  role: z.string(),
  terms: z
    .array(z.string())
    .describe('In words. The role reaches the rows for which all of them hold; without any, every row'),
  transition: TransitionSide.optional(),
});
const alternatives = z.array(AlternativeDescription);

/** What `GET /api/model` returns of the rules. */
export const RulesDescription = z.object({
  read: z.array(
    AlternativeDescription.extend({
      lists: z
        .object({ key: z.boolean().describe('The list of a partition'), indexes: z.array(z.string()) })
        .describe('The lists that the role may read with these terms'),
    }),
  ),
  create: alternatives,
  update: alternatives,
  delete: alternatives,
  fields: z.record(z.string(), alternatives).describe('Who may read a restricted field'),
});

/** The roles, and the rules if there are any. */
export function compileAccess<Through>({
  read,
  write,
  own,
  set,
  restricted,
  discloses,
}: AccessDeclaration<string, string, Through>): Access<string, string, Through> {
  const writes = Array.isArray(write) ? Object.fromEntries(WRITES.map((kind) => [kind, write])) : write;
  const rules = Object.fromEntries(
    [['read', read] as const, ...WRITES.map((kind) => [kind, Object(writes)[kind] ?? []] as const)].map(
      ([action, given]) => [action, toAlternatives(given as UpdateRule)],
    ),
  ) as unknown as Rules;
  const rolesOf = (...actions: Action[]) => [
    ...new Set(actions.flatMap((action) => rules[action].map(({ role }) => role))),
  ];
  const isLimited = Object.values(rules).some((rule) => rule.some((one) => hasTerms(one) || one.transition));
  const isOneWrite = WRITES.every((kind) => rolesOf(kind).join() === rolesOf('create').join());
  return {
    ...(own ? { own } : {}),
    ...(discloses ? { discloses } : {}),
    ...(set ? { set: set as Readonly<Record<string, SetTerm>> } : {}),
    ...(restricted ? compileRestricted(restricted) : {}),
    read: rolesOf('read'),
    write: rolesOf(...WRITES),
    ...(isLimited || !isOneWrite ? { rules } : {}),
  };
}

function toAlternatives(rule: UpdateRule): Alternative[] {
  return [rule].flat().flatMap((one, position): Alternative[] => {
    if (typeof one === 'string') return [{ role: one }];
    if ('role' in one) return [one];
    return (['before', 'after'] as const).flatMap((side) =>
      toAlternatives(one[side]).map((each) => ({ ...each, transition: { number: position + 1, side } })),
    );
  });
}

function compileRestricted(
  restricted: NonNullable<AccessDeclaration['restricted']>,
): Pick<Access, 'restricted' | 'unveiled'> {
  const rules = Object.entries(restricted).map(([field, rule = []]) => [field, toAlternatives(rule)] as const);
  const always = rules.map(([field, rule]) => [field, rule.filter((one) => !hasTerms(one)).map(({ role }) => role)]);
  const unveiled = rules.flatMap(([field, rule]) => (rule.some(hasTerms) ? [[field, rule.filter(hasTerms)]] : []));
  return {
    restricted: Object.fromEntries(always),
    ...(unveiled.length > 0 ? { unveiled: Object.fromEntries(unveiled) } : {}),
  };
}

/** The rules with a role that reads every row, and writes every row if it may read all fields: a row is written as a whole. */
export function withSteward<Through>(
  access: Access<string, string, Through>,
  steward: string | undefined,
): Access<string, string, Through> {
  if (steward === undefined) return access;
  const { read, write, rules, restricted = {} } = access;
  const seesAll = Object.values<readonly string[] | undefined>(restricted).every((roles) => roles?.includes(steward));
  const add = (roles: readonly string[]) => [...new Set([...roles, steward])];
  const addRule = (rule: readonly Alternative[], action: string) =>
    action === 'read' || seesAll ? [...rule, { role: steward }] : rule;
  return {
    ...access,
    steward,
    read: add(read),
    write: seesAll ? add(write) : write,
    ...(rules ? { rules: mapValues(rules, addRule) as Rules } : {}),
  };
}

/** False for an alternative that reaches every row. */
export function hasTerms({ where = {} }: { readonly where?: object | undefined }): boolean {
  return Object.keys(where).length > 0;
}

/** Rules by action, or by field. */
type RulesBy<Of> = Readonly<Record<string, readonly Alternative<string, Of>[]>>;

/** The rules with these entities in place of declarations. */
export function linkTerms<Of, By extends RulesBy<Declared>>(
  rules: By,
  owner: Of,
  find: (declared: Declared) => Of,
): { readonly [Name in keyof By]: readonly Alternative<string, Of>[] } {
  const linkTerm = (term: Term): Term<Of> => {
    if (typeof term !== 'object') return term;
    if (term.is === 'own') return { ...term, of: term.of ? find(term.of) : owner };
    return term.is === 'member' ? { ...term, of: find(term.of) } : term;
  };
  const link = ({ where = {}, ...alternative }: Alternative): Alternative<string, Of> => ({
    ...alternative,
    where: Object.fromEntries(Object.entries(where).map(([field, term]) => [field, linkTerm(term)])),
  });
  return mapValues(rules, (rule) => rule.map(link)) as { [Name in keyof By]: Alternative<string, Of>[] };
}

type AnyTerm = Term<unknown>;

interface Ruled<Of> {
  readonly rules?: RulesBy<Of>;
  readonly unveiled?: RulesBy<Of>;
  readonly set?: Readonly<Record<string, SetTerm>>;
}

function termsIn<Of>({ rules = {}, unveiled = {}, set = {} }: Ruled<Of>): Exclude<Term<Of>, Scalar>[] {
  const every = [...Object.values(rules), ...Object.values(unveiled)].flat();
  const all = [...Object.values(set), ...every.flatMap(({ where = {} }) => Object.values(where))];
  return all.filter((term) => typeof term === 'object');
}

/** The declarations, or the entities, to which the terms refer. */
export function declaredIn<Of>(access: Ruled<Of>): Of[] {
  return termsIn(access).flatMap((term) => ('of' in term && term.of ? [term.of] : []));
}

/** The claims that the terms compare. */
export function claimsIn(access: Ruled<unknown>): Extract<AnyTerm, { is: 'claim' }>[] {
  return termsIn(access).filter((term) => term.is === 'claim');
}

/** The field is one of these values. */
export function oneOf(...values: readonly [Scalar, ...Scalar[]]): Term {
  return { is: 'one of', values };
}

/** The text begins with these characters. */
export function startsWith(prefix: string): Term {
  return { is: 'prefix', prefix };
}

/** The field is within the bounds, which are included. Texts are compared by UTF-16 code unit. */
export function between(from: Scalar, to: Scalar): Term {
  return { is: 'between', from, to };
}

/** The field is the subject of the caller's token (`sub`). */
export function subject(): Term {
  return { is: 'subject' };
}

/**
 * Declares claims of the tokens, each of which is a term: the field is the claim, or one of its values if it is a list. `verifiedBy`
 * names the claims by which the issuer states that the value is verified; `{}` if the issuer verifies every value. Only `oid` and `sub` need none.
 *
 * @example
 * const claims = defineClaims({ departments: { verifiedBy: {} } });
 * const access = { read: [{ role: 'manager', where: { department: claims.departments } }], write: [] };
 */
export function defineClaims<const Names extends Readonly<Record<string, { readonly verifiedBy?: VerifiedBy }>>>(
  claims: Names,
): { readonly [Name in keyof Names]: Term } {
  const terms = Object.entries(claims).map(([claim, { verifiedBy }]) => [claim, { is: 'claim', claim, verifiedBy }]);
  return Object.freeze(Object.fromEntries(terms));
}

type FieldOf<Of extends Named> = keyof Of['schema']['shape'] & string;

/**
 * The field is that of the caller's own entity, which `access.own` finds: an entity of `of`, by default of the entity of the rule. Without
 * `field`, the field of the same name.
 */
export function own(): Term;
export function own<const Of extends Named>(of: Of | (() => Of), field?: FieldOf<Of>): Term;
export function own(of?: Declared, field?: string): Term {
  return { is: 'own', of, field };
}

/**
 * The caller is a member: `of` has a row whose key is the value of the field and the caller's subject. With `where`, only rows with these
 * values count.
 *
 * @example
 * const drivers = defineEntity('drivers', {
 *   schema: z.object({ depot: z.string(), userId: z.string(), rank: z.string() }),
 *   table: 'drivers',
 *   key: { partition: '{userId}', row: '{depot}' },
 *   access: { read: ['editor'], write: ['editor'] },
 * });
 * const access = {
 *   read: [{ role: 'reader', where: { depot: memberOf(drivers, 'depot') } }],
 *   write: [{ role: 'reader', where: { depot: memberOf(drivers, 'depot', { rank: 'chief' }) } }],
 * };
 */
export function memberOf<const Of extends Named>(
  of: Of | (() => Of),
  field: FieldOf<Of>,
  where: { readonly [Each in FieldOf<Of>]?: Scalar } = {},
): Term {
  return { is: 'member', of, field, where: where as Readonly<Record<string, Scalar>> };
}
