import type { z } from 'zod';
import type { AttachmentDeclaration } from './codec/reference.ts';
import type { Index } from './indexes.ts';
import type { CalendarUnit } from './keys/calendar.ts';
import type { KeyTemplate } from './keys/key-template.ts';
import type { Pattern } from './pattern.ts';
import type { Values } from './values.ts';

export interface Access<Field extends string = string, Role extends string = string, Through = DeclaredEntity> {
  readonly read: readonly Role[];
  readonly write: readonly Role[];
  /** Fields that only these roles may read. */
  readonly restricted?: Partial<Readonly<Record<Field, readonly string[]>>>;
  /**
   * How the entities of a caller are found: one entity, by a claim of the caller's token, such as `oid` or `sub`, and this
   * unique index of one field; or all entities in the partition that the caller's entity of `through` leads to, with what a
   * grant may allow on them (of `raud`).
   */
  readonly own?: ClaimOwner | { readonly through: Through; readonly permissions: string };
}

/** Each calendar period (UTC) has a table of its own, which is dropped as a whole. */
export interface Period<Field extends string = string> {
  readonly per: CalendarUnit;
  /** The field of the key that chooses the period: an ISO instant or date. */
  readonly field: Field;
  /** How many whole periods are kept besides the current one. */
  readonly keep: number;
}

export interface ClaimOwner {
  /** A claim of the token that is a text. */
  readonly claim: string;
  /** The unique index that has the claim as its one field. */
  readonly index: string;
  /**
   * Claims by which the issuer says that the value is verified, with the values that say so, in this order: the first claim
   * that a token has decides, and without any of them the value is not used. With `{}`, every value of the issuer counts.
   * Required for every claim but `oid` and `sub`, which nobody chooses: at some issuers anybody may give the address of
   * another person.
   */
  readonly verifiedBy?: VerifiedBy;
}

export type VerifiedBy = Readonly<Record<string, readonly (string | number | boolean)[]>>;

type Indexes = Readonly<Record<string, Index>>;

/**
 * What `defineEntity` returns: a declaration, validated and compiled once, and frozen. It refers to other declarations and
 * knows nothing of those that refer to it; `defineModel` makes an `Entity` of it. Any shape fits the default.
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
  /** Set for an entity of several kinds: the schema that tells them apart by `kind` (inheritance pattern). */
  readonly union: z.ZodType | undefined;
  /** The table, or the first part of its name if each period has a table. */
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The fields of the key, partition first, in the order in which a path gives them. */
  readonly keyFields: readonly KeyField[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly indexes: Of;
  /** Where archived entities are kept, under the same key. */
  readonly archive: { readonly table: string } | undefined;
  /** The fields of the partition key that a move may change. */
  readonly movable: readonly string[];
  readonly period: Period | undefined;
  /** Fields of this entity that are copied from another one in its partition. */
  readonly denormalized: readonly Copied[];
  /** Entities that have not changed for so many days are deleted; `clock` is the field with the day of the last change. */
  readonly expiry: { readonly days: number; readonly clock: string } | undefined;
  /** Fields that follow from others of the same entity. */
  readonly derived: Readonly<Record<string, (values: Values) => unknown>>;
  /** Fields that count the entities of another declaration in the partition. */
  readonly counts: Readonly<Record<string, DeclaredEntity>>;
  /** Texts that may be too long for one property: they are stored in several, or in a blob. */
  readonly large: readonly string[];
  /** Files, by the field that describes them. */
  readonly attachments: Readonly<Record<string, AttachmentDeclaration>>;
  /** Texts that are stored encrypted. */
  readonly encrypted: readonly string[];
  /** The version of the declaration; a row keeps the version that it was stored with. */
  readonly version: number;
  /** From a version to the next, by the version that they begin with. */
  readonly upgrades: Readonly<Record<number, (values: Values) => Values>>;
  /** The entity whose key this one's begins with (compound key pattern). */
  readonly childOf: DeclaredEntity | undefined;
  readonly access: Access<string, Role>;
  /** Set for a data series: its counts. */
  readonly series: Slots | undefined;
  /** Seconds for which clients may cache what they read. */
  readonly maxAge: number | undefined;
}

/** What `defineModel` adds: references to the other entities of the model, in both directions. */
interface Links {
  /** The patterns that the entity uses, in the order of lib/patterns/patterns.ts. */
  readonly patterns: readonly Pattern<Entity>[];
  /** An entity that is only read and deleted. */
  readonly archive: Entity | undefined;
  readonly denormalized: readonly Denormalized[];
  /** The entities that copy fields from this one. */
  readonly dependents: readonly Denormalized[];
  readonly counts: Readonly<Record<string, Entity>>;
  /** The entities that count this one. */
  readonly countedBy: readonly Counted[];
  readonly childOf: Entity | undefined;
  readonly children: readonly Entity[];
  readonly access: Access<string, string, Entity>;
}

/** The linked form of a declaration, typed by it. */
export type Linked<Declared extends DeclaredEntity> = Omit<Declared, keyof Links> & Links;

/** An entity of a model. The engine works on these alone: a declaration that no model has linked does not fit. */
export interface Entity extends Linked<DeclaredEntity> {}

/** The counts of a data series: one property for each slot, over one or more rows. */
export interface Slots {
  /** What a slot is, such as `hour`. */
  readonly name: string;
  readonly first: number;
  readonly last: number;
  /** How many slots one row holds. */
  readonly perRow: number;
}

export type ColumnType = 'String' | 'Boolean' | 'Int32' | 'Int64' | 'Double' | 'Json';

/** All of them, and the archives of those that have one. */
export function withArchives(entities: readonly Entity[]): Entity[] {
  return entities.flatMap((entity) => (entity.archive ? [entity, entity.archive] : [entity]));
}

/** Whether the row is all there is of the entity, so that writing it past the API leaves nothing behind that disagrees. */
export function canWriteThroughGrant(entity: Entity): boolean {
  const { dependents, children, countedBy } = entity;
  return isOneRow(entity) && [dependents, children, countedBy].every(({ length }) => length === 0);
}

/** The same as far as the declaration of the entity says: others of the model may still refer to it. */
export function isOneRow(entity: DeclaredEntity): boolean {
  const { indexes, denormalized, archive, childOf, counts, encrypted, large, attachments } = entity;
  const others = [Object.keys(indexes), denormalized, Object.keys(counts), encrypted];
  // A client could refer to the blob of another row, which would be shown with its own and deleted with it.
  others.push(large, Object.keys(attachments));
  return others.every(({ length }) => length === 0) && !archive && !childOf;
}

/** Whether clients may write it straight to storage, where nothing checks what they write. */
export function isWrittenByClients({ access: { own } }: Pick<DeclaredEntity, 'access'>): boolean {
  return own !== undefined && 'through' in own && /[aud]/.test(own.permissions);
}

/** A declared link of the denormalization pattern. */
export interface Copied {
  /** Copied from. */
  readonly source: DeclaredEntity;
  /** The field of the target that refers to the source, and the key field of the source that it holds. */
  readonly reference: { readonly field: string; readonly keyField: string };
  readonly copies: Readonly<Record<string, (source: Values) => unknown>>;
}

/** The link in a model. */
export interface Denormalized extends Copied {
  readonly source: Entity;
  /** Copied to. */
  readonly target: () => Entity;
}

/** A maintained count of an entity. */
export interface Counted {
  /** The entity that has the count. */
  readonly target: () => Entity;
  readonly field: string;
}
