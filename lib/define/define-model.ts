import { z } from 'zod';
import { DeclarationError } from '../base/errors.ts';
import { frozenCopy, omit, withoutPrototype } from '../base/values.ts';
import {
  type Access,
  type Declared,
  declaredIn,
  linkTerms,
  RULES_MAX_AGE_S,
  withSteward,
} from './declaration/access.ts';
import { absentOptions, type DeclaredEntity, type OptionsWith, resolveDeclared } from './declaration/declaration.ts';
import { type Denormalized, type Entity, type Feature, type Reference, withFeatures } from './declaration/entity.ts';
import { type RequestLimit, RequestLimitOptions } from './declaration/request-limit.ts';
import type { DeclaredOperation, OperationsOf } from './define-operation.ts';
import { type Placement, PlacementOptions } from './places/placement.ts';
import { declaredEntity, names, optionErrors, optionsOf } from './schema/options.ts';
import { malformedTermErrors } from './validate/malformed-terms.ts';
import { type Reserved, validateModel } from './validate/validate-model.ts';

/** The options whose type is the same for every model. */
interface PlainOptions {
  /**
   * Begins the names of all tables, queues and containers of the model, so that several apps can share a storage account: 1 to
   * 20 lower-case letters and digits from 1 to 9, a letter first. Without it, the names are the declared ones. The entities keep their names.
   */
  readonly prefix?: string;
  /**
   * Seconds for which a process remembers what rules on rows have read, the caller's memberships and own entity: 1 to 3,600, by default 30.
   * For so long, a caller may do what another process has just revoked.
   */
  readonly rulesMaxAge?: number;
  /**
   * The most requests that a process has in progress at a time at each storage account, at least 2. Further ones wait, those of callers before
   * background work. By default callers have no limit, and background work adapts to the load alone.
   */
  readonly maxStorageRequests?: number | undefined;
  /**
   * How many parts each queue has, by default 1: more for an app that makes more than 1,000 changes a second with entries in other partitions. May be
   * changed at any time.
   */
  readonly queueParts?: number;
  /**
   * True lets operators block a user whose token is still valid. Each process then reads the list of blocked users every 10 seconds in which it has
   * requests. By default false.
   */
  readonly blocksUsers?: boolean;
  /**
   * How often a timer compares all rows with each other and repairs what loses no value, by default weekly. What the engine promises does not
   * depend on it: it finds rows that were changed by hand, restored or written by clients.
   */
  readonly consistencyCheck?: 'weekly' | 'monthly' | 'never';
  /**
   * The storage account of containers whose blobs should be together, by the container: `{ audit: 'second' }`. Without several accounts it
   * means nothing. By default files and texts are in the accounts of their slots, and the audit log is in the first account.
   */
  readonly containerAccounts?: Readonly<Record<string, string>>;
  /**
   * The storage account of tenants, ranges of keys and entities, each under a name that stays: `{ acme: { keys: ['acme'], account: 'second' }
   * }`. Without several accounts it means nothing. `npm run accounts -- balance` brings them there.
   */
  readonly placement?: Readonly<Record<string, Placement>>;
  /**
   * Keeps a backup in a storage account of its own, which the connection `BackupStorage` names: everything can be restored to its state at any moment
   * of the last `days`, by default 35. `roles` may read what was stored then as far as they may read what is stored now, by default the
   * operators. By default there is no backup.
   */
  readonly backup?: { readonly days?: number | undefined; readonly roles?: readonly string[] | undefined } | undefined;
}

export interface ModelDeclaration<
  Declared extends readonly DeclaredEntity[],
  Roles extends readonly string[] = readonly string[],
  Own extends readonly DeclaredOperation[] = readonly DeclaredOperation[],
> extends PlainOptions {
  /** The roles that a token may have (its claim `roles`) and that `access` of an entity may name. */
  readonly roles: Roles;
  /** The role that may run the operations: consistency checks, poison messages, the audit log. */
  readonly operatorRole: NoInfer<Roles[number]>;
  /**
   * One of `roles`: that of every user to whom the issuer gives a token, if the token names no role of the model. An app that signs in as
   * itself is no user. By default nobody has a role that no token names.
   */
  readonly signedIn?: NoInfer<Roles[number]>;
  /**
   * One of `roles`: that of every request without a token, whose caller is a visitor without an identity. Its writes need `limits`. By default
   * a request without a token is rejected. One with a token that is not valid always is.
   */
  readonly anyone?: NoInfer<Roles[number]>;
  /**
   * One of `roles`, neither `signedIn` nor `anyone`: it reads all rows past the rules, and writes those of which it may read every field. Its reads and
   * writes are in the audit log, and it gets no grants. A restricted field names it like any other role. By default nobody sees everything.
   */
  readonly steward?: NoInfer<Roles[number]>;
  /** How many requests each caller with a role may make. By default any number. */
  readonly limits?: readonly RequestLimit<
    NoInfer<Roles[number]>,
    NoInfer<Declared[number]['name']>,
    NoInfer<Own[number]['name']>
  >[];
  /** The entities that the app stores. An entity that is not listed has no routes and no tables. */
  readonly entities: CheckedRoles<Declared, Roles[number]>;
  /** What the app does beside reading and writing its entities: `createRowkey` has the implementations. By default nothing. */
  readonly operations?: CheckedRoles<Own, Roles[number]>;
}

/** Each part is a function with a queue of its own, which every instance of the app asks for messages. */
const MAX_QUEUE_PARTS = 32;

/** Ten years. */
const MAX_BACKUP_DAYS = 3_653;

/** What each option accepts, and its default. */
const ModelOptions = optionsOf({
  prefix: z.string().default(''),
  roles: names,
  operatorRole: z.string(),
  signedIn: z.string().optional(),
  anyone: z.string().optional(),
  steward: z.string().optional(),
  limits: z.array(RequestLimitOptions).readonly().default([]),
  rulesMaxAge: z.int().min(1).max(3_600).default(RULES_MAX_AGE_S),
  maxStorageRequests: z.int().min(2).optional(),
  queueParts: z.int().min(1).max(MAX_QUEUE_PARTS).default(1),
  blocksUsers: z.boolean().default(false),
  consistencyCheck: z.enum(['weekly', 'monthly', 'never']).default('weekly'),
  containerAccounts: z.record(z.string(), z.string()).default({}),
  placement: z.record(z.string(), PlacementOptions).default({}),
  backup: z.strictObject({ days: z.int().min(1).max(MAX_BACKUP_DAYS).default(35), roles: names.optional() }).optional(),
  entities: z.array(declaredEntity()).readonly(),
  operations: z
    .array(z.custom((value) => Object(value).input instanceof z.ZodType, { error: 'needs a declared operation' }))
    .readonly()
    .default([]),
} satisfies Record<keyof ModelDeclaration<readonly DeclaredEntity[]>, z.ZodType>);

type CompiledOptions = Readonly<Omit<z.output<typeof ModelOptions>, 'entities' | 'operations'>>;

/** The entities or operations, if their roles are declared; otherwise a sentence for the compiler to show. */
type CheckedRoles<Declared extends readonly unknown[], Role extends string> = [
  Exclude<RolesOf<Declared[number]>, Role>,
] extends [never]
  ? Declared
  : {
      readonly [Index in keyof Declared]: [Exclude<RolesOf<Declared[Index]>, Role>] extends [never]
        ? Declared[Index]
        : `"${Exclude<RolesOf<Declared[Index]>, Role>}" is not a role of the model`;
    };
/** `never` for roles that the compiler does not know. The model validates them anyway. */
type RolesOf<One> = One extends
  | { readonly access: Access<string, infer Role> }
  | DeclaredOperation<string, z.ZodType, z.ZodType, infer Role>
  ? string extends Role
    ? never
    : Role
  : never;

/** The entities of a model by name, each as it is declared. */
export type EntitiesOf<Declared extends readonly DeclaredEntity[], Steward = undefined> = {
  readonly [One in Declared[number] as One['name']]: [Steward] extends [string] ? One & Stewarded : One;
};
interface Stewarded {
  readonly access: { readonly steward: string };
}

/** Everything that an app stores, frozen. */
export interface Model<
  Declared extends readonly DeclaredEntity[] = readonly DeclaredEntity[],
  Own extends readonly DeclaredOperation[] = readonly DeclaredOperation[],
  Steward = undefined,
> extends CompiledOptions {
  readonly entities: EntitiesOf<Declared, Steward>;
  readonly operations: OperationsOf<Own>;
  /**
   * The linked entities in the order of the declaration.
   * @internal The types of the package end at the declarations.
   */
  readonly list: readonly Entity[];
}

/** What the library needs of a model. */
export interface LinkedModel extends Omit<Model, 'entities'> {
  readonly list: readonly Entity[];
}

interface ModelShape<Declared extends readonly DeclaredEntity[], Own extends readonly DeclaredOperation[]>
  extends PlainOptions {
  readonly roles: readonly string[];
  readonly operatorRole: string;
  readonly signedIn?: string;
  readonly anyone?: string;
  readonly steward?: string;
  readonly limits?: readonly RequestLimit[];
  readonly entities: Declared;
  readonly operations?: Own;
}

/** Validates and links a model. Throws an error that lists everything that is wrong. */
export function linkModel<
  const Declared extends readonly DeclaredEntity[],
  const Own extends readonly DeclaredOperation[],
  Steward = undefined,
>(
  declaration: ModelShape<Declared, Own>,
  { reserved, features }: { readonly reserved: Reserved; readonly features: readonly Feature[] },
): Model<Declared, Own, Steward> {
  refuse(optionErrors(ModelOptions, declaration));
  const options = frozenCopy(ModelOptions.parse(declaration, { jitless: true }));
  const { entities, operations = [] } = declaration;
  // Linking follows the entities in terms.
  refuse(entities.flatMap((entity) => [...malformedTermErrors(entity)]));
  refuse([...linkErrors(entities)]);
  const list = linkEntities(entities, features, options.steward);
  refuse(validateModel({ ...options, entities: list, operations }, reserved));
  return Object.freeze({
    ...options,
    entities: byName<EntitiesOf<Declared, Steward>>(list),
    operations: byName<OperationsOf<Own>>(operations),
    list,
  });
}

function refuse(errors: readonly string[]): void {
  if (errors.length > 0) throw new DeclarationError(`The model is not valid.\n${errors.join('\n')}`);
}

/** A linked entity is used like its declaration, but the compiler cannot compare the types of all of its options. */
function byName<Named>(list: readonly { readonly name: string }[]): Named {
  const named = list.map((one) => [one.name, one] as const);
  const frozen: unknown = Object.freeze(withoutPrototype(Object.fromEntries(named)));
  return frozen as Named;
}

/** An entity while its references are filled in. */
type Draft = Entity & {
  -readonly [Name in keyof OptionsWith<'isLinked'>]: Entity[Name];
} & {
  readonly [List in 'dependents' | 'referencedBy' | 'countedBy' | 'children']: Entity[List][number][];
};

/** The entities that a declaration refers to, each with the kind of reference. */
function referencesOf(declared: DeclaredEntity): [string, DeclaredEntity][] {
  const { childOf, counts, denormalized, references: declaredReferences } = declared;
  const { own } = declared.access;
  const references: [string, DeclaredEntity | undefined][] = [
    ['is a child of', childOf],
    ...Object.values(counts).map((counted): [string, DeclaredEntity] => ['counts', resolveDeclared(counted)]),
    ...Object.values(denormalized).map(({ source }): [string, DeclaredEntity] => [
      'copies fields from',
      resolveDeclared(source),
    ]),
    ...Object.values(declaredReferences).map(({ to }): [string, DeclaredEntity] => ['refers to', resolveDeclared(to)]),
    ['is granted through', own && 'through' in own ? own.through : undefined],
    ...declaredIn(declared.access).map((of): [string, DeclaredEntity] => ['has rules with', declarationOf(of)]),
  ];
  return references.flatMap(([relation, other]) => (other ? [[relation, other]] : []));
}

/** The terms of rules know of a declaration only what they need. */
function declarationOf(of: Declared): DeclaredEntity {
  return (typeof of === 'function' ? of() : of) as DeclaredEntity;
}

/** Yields a sentence for each reference that cannot be linked. */
function* linkErrors(entities: readonly DeclaredEntity[]): Generator<string> {
  const names = entities.flatMap(({ name, archive }) => (archive ? [name, archive.table] : [name]));
  for (const name of new Set(names.filter((each, position) => names.indexOf(each) < position)))
    yield `Entity "${name}" is declared twice, or is also an archive's table. Give each a name of its own.`;
  for (const entity of entities)
    for (const [relation, other] of referencesOf(entity)) {
      const { name } = entity;
      const isOther = entities.some((one) => one !== other && one.name === other.name);
      if (isOther && !entities.includes(other))
        yield `Entity "${name}" ${relation} "${other.name}", and the model has another declaration of that name. Use one declaration.`;
      else if (!entities.includes(other))
        yield `Entity "${name}" ${relation} "${other.name}", which is not in the model. Add "${other.name}", or remove "${name}".`;
    }
}

/**
 * Returns frozen copies of the declarations, in the same order, that refer to each other in both directions. The
 * declarations are not changed, so one declaration may be in several models. Throws for a reference to an entity that is
 * not in the list; `linkErrors` describes that error.
 */
export function linkEntities(
  declarations: readonly DeclaredEntity[],
  features: readonly Feature[],
  steward?: string,
): readonly Entity[] {
  const declared = declarations.map((declaration) => ({
    ...declaration,
    access: withSteward(declaration.access, steward),
  }));
  const drafts = new Map(declared.map((declaration) => [declaration.name, draftOf(declaration)]));
  const find = ({ name }: DeclaredEntity): Draft => {
    const found = drafts.get(name);
    if (found) return found;
    throw new Error(`The entity "${name}" is not in the model.`);
  };
  for (const declaration of declared) addReferences(find(declaration), declaration, find);
  for (const draft of drafts.values()) Object.assign(draft, withFeatures(draft, features));
  // An archive keeps the children too, which are linked by now.
  for (const declaration of declared)
    if (declaration.archive)
      find(declaration).archive = freeze(archiveOf(find(declaration), declaration.archive, features));
  return Object.freeze(declared.map((declaration) => freeze(find(declaration))));
}

/** Links an entity that refers to no other entity and uses no pattern. */
export function linkEntity(declared: DeclaredEntity): Entity {
  const [entity] = linkEntities([declared], []);
  if (!entity) throw new Error(`The entity "${declared.name}" cannot be linked.`);
  return entity;
}

function draftOf(declaration: DeclaredEntity): Draft {
  const { own: _own, rules: _rules, unveiled: _unveiled, ...access } = declaration.access;
  const unlinked: unknown = {
    ...declaration,
    ...absentOptions('isLinked'),
    access,
    features: [],
    isArchive: false,
    dependents: [],
    referencedBy: [],
    countedBy: [],
    children: [],
  };
  return unlinked as Draft;
}

function addReferences(draft: Draft, declaration: DeclaredEntity, find: (other: DeclaredEntity) => Draft): void {
  const { childOf, counts, denormalized, references, access } = declaration;
  if (childOf) {
    draft.childOf = find(childOf);
    find(childOf).children.push(draft);
  }
  const counted = Object.entries(counts).map(([field, other]) => [field, find(resolveDeclared(other))] as const);
  draft.counts = withoutPrototype<Entity>(Object.fromEntries(counted));
  for (const [field, other] of counted) other.countedBy.push(Object.freeze({ target: () => draft, field }));
  const copying = Object.entries(denormalized).map(([field, declared]) => {
    const source = find(resolveDeclared(declared.source));
    const { by = defaultKeyField(source, field) } = declared;
    const link: Denormalized = Object.freeze({ ...declared, source, field, by, target: () => draft });
    source.dependents.push(link);
    return [field, link] as const;
  });
  draft.denormalized = withoutPrototype<Denormalized>(Object.fromEntries(copying));
  const referring = Object.entries(references).map(([field, declared]) => {
    const to = find(resolveDeclared(declared.to));
    const { by = defaultBy(to, field), onDelete, unseen = false } = declared;
    const reference: Reference = Object.freeze({ from: () => draft, field, to, by, onDelete, unseen });
    to.referencedBy.push(reference);
    return [field, reference] as const;
  });
  draft.references = withoutPrototype<Reference>(Object.fromEntries(referring));
  const { own, rules, unveiled, ...roles } = access;
  const findDeclared = (of: Declared) => find(declarationOf(of));
  const linked: Entity['access'] = {
    ...roles,
    ...(own ? { own: 'through' in own ? Object.freeze({ ...own, through: find(own.through) }) : own } : {}),
    ...(rules ? { rules: linkTerms<Entity, typeof rules>(rules, draft, findDeclared) } : {}),
    ...(unveiled ? { unveiled: linkTerms<Entity, typeof unveiled>(unveiled, draft, findDeclared) } : {}),
  };
  Object.assign(draft, { access: linked });
}

function defaultKeyField({ keyFields }: DeclaredEntity, field: string): string {
  return keyFields.includes(field) ? field : (keyFields.at(-1) ?? field);
}

function defaultBy({ columns, keyFields }: DeclaredEntity, field: string): string {
  return Object.hasOwn(columns, field) ? field : (keyFields.at(-1) ?? field);
}

/** Archived entities can be read and deleted, under their original key. */
function archiveOf(
  entity: Entity,
  { table, without = [] }: NonNullable<DeclaredEntity['archive']>,
  features: readonly Feature[],
): Entity {
  const kept = without.length > 0 ? withoutFields(entity, without) : entity;
  const { own: _, ...access } = kept.access;
  const archive: Entity = {
    ...kept,
    ...absentOptions('notInArchive'),
    name: table,
    table,
    isArchive: true,
    dependents: [],
    referencedBy: [],
    countedBy: [],
    children: entity.children.map((child) => Object.freeze({ ...child, table })),
    access,
  };
  return withFeatures(archive, features);
}

/** The lists of an entity that name fields. One that is empty may be a list of anything. */
const Texts = z.array(z.string()).min(1);

/** The entity without fields that nothing else of its declaration names: see `archiveErrors` of validate-entity.ts. */
function withoutFields(entity: Entity, without: readonly string[]): Entity {
  const { schema, access } = entity;
  const { restricted, unveiled } = access;
  const left = (fields: readonly string[]) => Object.freeze(fields.filter((field) => !without.includes(field)));
  const leftIn = <Records extends object>(record: Records): Records =>
    Object.freeze(withoutPrototype(omit(Object.fromEntries(Object.entries(record)), without))) as Records;
  const lists = Object.entries(entity).filter(
    (entry): entry is [string, string[]] => Texts.safeParse(entry[1]).success,
  );
  const records = (['columns', 'derived', 'attachments'] as const).map((name) => [name, leftIn(entity[name])]);
  return {
    ...entity,
    ...Object.fromEntries(lists.map(([name, fields]) => [name, left(fields)])),
    ...Object.fromEntries(records),
    schema: z.strictObject(omit({ ...schema.shape }, without) as typeof schema.shape),
    access: {
      ...access,
      ...(restricted ? { restricted: leftIn(restricted) } : {}),
      ...(unveiled ? { unveiled: leftIn(unveiled) } : {}),
    },
  };
}

function freeze(entity: Entity): Entity {
  const { denormalized, dependents, references, referencedBy, counts, countedBy, children, access, indexes } = entity;
  const links = [denormalized, dependents, references, referencedBy, counts, countedBy, children, access];
  for (const part of [...links, ...Object.values(indexes)]) Object.freeze(part);
  return Object.freeze(entity);
}
