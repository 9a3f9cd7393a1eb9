import type { z } from 'zod';
import type { AttachmentDeclaration } from './codec/reference.ts';
import type { Index } from './indexes.ts';
import type { CalendarUnit } from './keys/calendar.ts';
import type { KeyTemplate } from './keys/key-template.ts';
import type { Pattern } from './pattern.ts';
import type { Total } from './totals.ts';
import type { Values } from './values.ts';

export interface Access<Field extends string = string, Role extends string = string, Through = DeclaredEntity> {
  readonly read: readonly Role[];
  readonly write: readonly Role[];
  /** Fields that only these roles may read. */
  readonly restricted?: Partial<Readonly<Record<Field, readonly string[]>>>;
  /**
   * How the caller's own entities are found. Either one entity, by a claim of the token such as `oid` or `sub` and this
   * unique index of one field. Or all entities of the partition that the caller's entity of `through` leads to;
   * `permissions` (of `raud`) limits what a grant may allow on them.
   */
  readonly own?: ClaimOwner | GrantedPartition<Through>;
}

export interface GrantedPartition<Through = DeclaredEntity> {
  readonly through: Through;
  readonly permissions: string;
}

/** Each calendar period (UTC) has a table of its own, which is dropped as a whole. */
export interface Period<Field extends string = string> {
  readonly per: CalendarUnit;
  /** The key field that chooses the period: an ISO instant or date. */
  readonly field: Field;
  /** How many whole periods are kept besides the current one. */
  readonly keep: number;
  /** `'blob'`: the rows of a table are stored in a compressed blob, which is verified before the table is dropped. */
  readonly archiveTo?: 'blob' | undefined;
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

export type VerifiedBy = Readonly<Record<string, readonly (string | number | boolean)[]>>;

type Indexes = Readonly<Record<string, Index>>;

/**
 * The result of `defineEntity`: a validated, compiled and frozen declaration. It refers to other declarations and does not
 * know which declarations refer to it; `defineModel` turns it into an `Entity`. The default type parameters accept any
 * shape.
 */
export interface DeclaredEntity<
  Shape extends z.ZodRawShape = z.core.$ZodLooseShape,
  Name extends string = string,
  KeyField extends string = string,
  Of extends Indexes = Indexes,
  Role extends string = string,
> {
  readonly name: Name;
  readonly schema: z.ZodObject<Shape>;
  /** Set for an entity of several kinds: the schema that distinguishes them by `kind` (inheritance pattern). */
  readonly union: z.ZodType | undefined;
  /** The table, or the first part of its name if each period has a table. */
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The fields of the key in the order of a path: the partition's first. */
  readonly keyFields: readonly KeyField[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly indexes: Of;
  /** Numbers of entities by groups, with sums and extremes of their fields. */
  readonly totals: Readonly<Record<string, Total>>;
  /** The table of archived entities, which keep their keys. */
  readonly archive: { readonly table: string } | undefined;
  /** The fields of the partition key that a move may change. */
  readonly movable: readonly string[];
  readonly period: Period | undefined;
  /** Fields of this entity that are copied from another entity of its partition. */
  readonly denormalized: readonly Copied[];
  /** Fields that refer to entities of other declarations. */
  readonly references: Readonly<Record<string, DeclaredReference>>;
  /** Entities that have not changed for this many days are deleted; `clock` is the field with the day of the last change. */
  readonly expiry: { readonly days: number; readonly clock: string } | undefined;
  /** Fields that are computed from others of the same entity. */
  readonly derived: Readonly<Record<string, (values: Values) => unknown>>;
  /** Fields that count the entities of another declaration in the partition. */
  readonly counts: Readonly<Record<string, Declared>>;
  /** Groups of fields that are stored in a row of their own and read on demand (vertical split). */
  readonly split: Readonly<Record<string, readonly string[]>>;
  /** True if the fields may take several rows (wide entities). */
  readonly wide: boolean;
  /** Texts that may be too long for one property. They are stored in several properties or in a blob. */
  readonly large: readonly string[];
  /** Files, by the field that describes them. */
  readonly attachments: Readonly<Record<string, AttachmentDeclaration>>;
  /** Texts that are stored encrypted. */
  readonly encrypted: readonly string[];
  /** The version of the declaration. A row keeps the version it was stored with. */
  readonly version: number;
  /** The upgrade to the next version, by the version it starts from. */
  readonly upgrades: Readonly<Record<number, (values: Values) => Values>>;
  /** The parent: its row key is the beginning of this entity's row key (compound key pattern). */
  readonly childOf: DeclaredEntity | undefined;
  readonly access: Access<string, Role>;
  /** Set for a data series: its counts. */
  readonly series: Slots | undefined;
  /** Seconds for which clients may cache a response. */
  readonly maxAge: number | undefined;
  /** How the whole entity is listed from memory. */
  readonly lookup: LookupDeclaration | undefined;
}

/** A small entity that each process keeps in memory as one list, which it reads through an index with one partition. */
export interface LookupDeclaration<IndexName extends string = string> {
  readonly index: IndexName;
  /** Seconds after which a process reads the list again; 30 by default. */
  readonly maxAge?: number | undefined;
}

/** References to the other entities of the model, in both directions. `defineModel` adds them. */
interface Links {
  /** The patterns that the entity uses, in the order of lib/patterns/patterns.ts. */
  readonly patterns: readonly Pattern<Entity>[];
  /** The archive, an entity that can only be read and deleted. */
  readonly archive: Entity | undefined;
  /** True for an archive itself, whose rows arrive by transfers. */
  readonly isArchive: boolean;
  readonly denormalized: readonly Denormalized[];
  /** The entities that copy fields from this one. */
  readonly dependents: readonly Denormalized[];
  readonly references: Readonly<Record<string, Reference>>;
  /** The references of other entities, and its own, to this one. */
  readonly referencedBy: readonly Reference[];
  readonly counts: Readonly<Record<string, Entity>>;
  /** The entities that count this one. */
  readonly countedBy: readonly Counted[];
  readonly childOf: Entity | undefined;
  readonly children: readonly Entity[];
  readonly access: Access<string, string, Entity>;
}

/** The linked form of a declaration, typed by it. */
export type Linked<Declared extends DeclaredEntity> = Omit<Declared, keyof Links> & Links;

/** An entity of a model. The engine accepts only linked entities; the types reject a bare declaration. */
export interface Entity extends Linked<DeclaredEntity> {}

/** The counts of a data series: one property for each slot, in one or more rows. */
export interface Slots {
  /** The unit of a slot, such as `hour`. */
  readonly name: string;
  readonly first: number;
  readonly last: number;
  /** How many slots one row holds. */
  readonly perRow: number;
  /** `'blob'`: there is one row, and the counts that it cannot hold are in a blob. */
  readonly overflow: 'blob' | undefined;
  readonly span: Span | undefined;
}

/** The slots of all keys in the order of time: each key is a calendar period (UTC), which its slots divide. */
export interface Span<Field extends string = string> {
  /** The key field that is the period: `2026-11-20`, `2026-11` or 2026. */
  readonly field: Field;
  readonly per: CalendarUnit;
}

export type ColumnType = 'String' | 'Boolean' | 'Int32' | 'Int64' | 'Double' | 'Json';

/** The entities and their archives. */
export function withArchives(entities: readonly Entity[]): Entity[] {
  return entities.flatMap((entity) => (entity.archive ? [entity, entity.archive] : [entity]));
}

/** The members of a pattern that take no part in a write once its values are valid. */
const APART_FROM_WRITES: ReadonlySet<string> = new Set<keyof Pattern<Entity>>([
  'name',
  'isUsed',
  'validate',
  'memory',
  'check',
  'tables',
  'timer',
]);

/**
 * True if nothing follows from a write but the row of the entity: no pattern has further rows, blobs or fields, and no transfer
 * closes the row to writers. Such a row can be written without a read.
 */
export function isOneRow({ archive, isArchive, movable, patterns, series }: Entity): boolean {
  const isApart = patterns.every((pattern) => Object.keys(pattern).every((member) => APART_FROM_WRITES.has(member)));
  return isApart && !series && !archive && !isArchive && movable.length === 0;
}

/** True if the entity is its row alone, so that a write past the API leaves nothing stale behind. */
export function canWriteThroughGrant(entity: Entity): boolean {
  return !entity.archive && keptByEngine(entity).length === 0;
}

/**
 * The patterns that have rows beside the entity, set its fields, or store values by reference. A client could refer to the
 * blob of another row, which the app would then serve and delete with its own.
 */
export function keptByEngine(entity: Entity): readonly Pattern<Entity>[] {
  return entity.patterns.filter(
    ({ leavesTombstone, furtherRows, references, keptFields }) =>
      leavesTombstone || furtherRows || references || keptFields?.(entity).length,
  );
}

/** True if clients may write it directly to storage, where nothing validates their rows. */
export function isWrittenByClients({ access: { own } }: Pick<DeclaredEntity, 'access'>): boolean {
  return own !== undefined && 'through' in own && /[aud]/.test(own.permissions);
}

/**
 * Another declaration, or a function that returns it. Of two declarations that refer to each other, the first needs the function:
 * `(): DeclaredEntity => departments`. Without its return type, the type of each declaration would follow from the other.
 */
export type Declared = DeclaredEntity | (() => DeclaredEntity);

export function resolveDeclared(declared: Declared): DeclaredEntity {
  return typeof declared === 'function' ? declared() : declared;
}

/** A declared link of the denormalization pattern. */
export interface Copied<Field extends string = string> {
  /** Copied from. */
  readonly source: Declared;
  /** The field of the target that refers to the source, and the key field of the source that it contains. */
  readonly reference: { readonly field: Field; readonly keyField: string };
  readonly copies: Readonly<Record<string, (source: Values) => unknown>>;
  /**
   * Without it, one row of the source's partition has copies, which change in the transaction of the source. With it, any number
   * of entities of any partition have copies, which a queue updates after a change of the source.
   */
  readonly fanOut?: boolean | undefined;
}

export interface Denormalized extends Copied {
  readonly source: Entity;
  /** Copied to. */
  readonly target: () => Entity;
}

/** A field that refers to an entity: its value is the value of a field of that entity. */
export interface DeclaredReference {
  readonly to: Declared;
  /**
   * The field of the other entity: by default the one of the same name, or else the last of its key. If the other key has
   * further fields, this entity has them too, under the same names, or the other entity has a unique index of this field.
   */
  readonly by?: string;
  /**
   * `refuse`: an entity that others refer to cannot be deleted, archived or moved away. `report`: it can, and the consistency
   * check finds the entities that refer to it.
   */
  readonly onDelete: 'refuse' | 'report';
}

export interface Reference extends DeclaredReference {
  /** The referring entity. */
  readonly from: () => Entity;
  readonly field: string;
  readonly to: Entity;
  readonly by: string;
}

/** A maintained count of an entity. */
export interface Counted {
  /** The entity that has the count. */
  readonly target: () => Entity;
  readonly field: string;
}
