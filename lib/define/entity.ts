import type { z } from 'zod';
import type { CalendarUnit } from './calendar.ts';
import type { Index } from './indexes.ts';
import type { KeyTemplate } from './key-template.ts';
import type { AttachmentDeclaration } from './reference.ts';

/** The fields of an entity as its schema parsed them. */
export type Values = Readonly<Record<string, unknown>>;

export const ROLES = ['reader', 'hr', 'operator'] as const;
export type Role = (typeof ROLES)[number];

export interface Access<Field extends string = string> {
  readonly read: readonly Role[];
  readonly write: readonly Role[];
  /** Fields that only these roles are shown. */
  readonly restricted?: Partial<Readonly<Record<Field, readonly Role[]>>>;
  /**
   * How a caller's own are found: one by this unique index of one field, with this claim of the caller's token, such as
   * `email` (only where the issuer says that it is verified), `oid` or `sub`; or all those in the partition that the own one of another entity leads to, with what may be granted for them (of `raud`).
   */
  readonly own?:
    | { readonly claim: string; readonly index: string }
    | { readonly through: Entity; readonly permissions: string };
}

/** Each calendar period (UTC) has a table of its own, which is dropped as a whole. */
export interface Period<Field extends string = string> {
  readonly per: CalendarUnit;
  /** The field of the key that chooses the period: an ISO instant or date. */
  readonly field: Field;
  /** How many whole periods are kept besides the current one. */
  readonly keep: number;
}

/** A declaration, validated and compiled once; everything that works on entities is driven by it. Any shape fits the default. */
export interface Entity<Shape extends z.ZodRawShape = z.core.$ZodLooseShape> {
  readonly name: string;
  readonly schema: z.ZodObject<Shape>;
  /** Where the entity is of several kinds: each as a whole, told apart by `kind` (inheritance pattern). */
  readonly union: z.ZodType | undefined;
  /** The table, or the first part of its name if each period has a table. */
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The fields of the key, partition first, in the order in which a path gives them. */
  readonly keyFields: readonly string[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly indexes: Readonly<Record<string, Index>>;
  /** Where archived ones are kept, under the same key: an entity that is only read and deleted. */
  readonly archive: Entity | undefined;
  /** May go to another partition: one of these fields changes. */
  readonly movable: readonly string[];
  readonly period: Period | undefined;
  /** Fields of this entity that are copied from another one in its partition. */
  readonly denormalized: readonly Denormalized[];
  /** Fields that follow from others of the same entity. */
  readonly derived: Readonly<Record<string, (values: Values) => unknown>>;
  /** The other side of that: who copies from this entity. Filled in as the others are defined. */
  readonly dependents: Denormalized[];
  /** Fields that say how many of another entity there are in the partition. */
  readonly counts: Readonly<Record<string, Entity>>;
  /** The other side of that: who counts this entity. Filled in as the others are defined. */
  readonly countedBy: Counted[];
  /** Texts that may be too long for one property: they go over several, and then to a blob. */
  readonly large: readonly string[];
  /** Files, by the field that describes them. */
  readonly attachments: Readonly<Record<string, AttachmentDeclaration>>;
  /** Texts that are stored encrypted. */
  readonly encrypted: readonly string[];
  /** Of the declaration: what is stored has that of its time. */
  readonly version: number;
  /** From a version to the next, by the version that they begin with. */
  readonly upgrades: Readonly<Record<number, (values: Values) => Values>>;
  /** The entity whose key this one's begins with (compound key pattern). */
  readonly childOf: Entity | undefined;
  /** The other side of that. Filled in as the others are defined. */
  readonly children: Entity[];
  readonly access: Access;
  /** Set for a data series: its counts. */
  readonly series: Slots | undefined;
  /** Seconds for which a client may go on with what it read, as with a lookup table. */
  readonly maxAge: number | undefined;
}

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

/** Those of the fields that have a value. */
export function pick(values: Values, fields: readonly string[]): Values {
  return Object.fromEntries(
    fields.filter((field) => values[field] !== undefined).map((field) => [field, values[field]]),
  );
}

/** All but those of the fields. */
export function omit(values: Values, fields: readonly string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([field]) => !fields.includes(field)));
}

/** Whether the row is all there is of the entity, so that writing it past the API leaves nothing behind that disagrees. */
export function canWriteThroughGrant(entity: Entity): boolean {
  const { indexes, denormalized, dependents, archive, children, childOf, countedBy, counts, encrypted } = entity;
  const { large, attachments } = entity;
  const others = [Object.keys(indexes), denormalized, dependents, children, countedBy, Object.keys(counts), encrypted];
  // A client could refer to the blob of another row, which would be shown with its own and deleted with it.
  others.push(large, Object.keys(attachments));
  return others.every(({ length }) => length === 0) && !archive && !childOf;
}

/** Whether clients may write it straight to storage, where nothing checks what they write. */
export function isWrittenByClients({ access: { own } }: Pick<Entity, 'access'>): boolean {
  return own !== undefined && 'through' in own && /[aud]/.test(own.permissions);
}

/** A link of the denormalization pattern. */
export interface Denormalized {
  /** Copied from. */
  readonly source: Entity;
  /** Copied to: known once that entity is defined. */
  readonly target: () => Entity;
  /** The field of the target that refers to the source, and the key field of the source that it holds. */
  readonly reference: { readonly field: string; readonly keyField: string };
  readonly copies: Readonly<Record<string, (source: Values) => unknown>>;
}

/** A maintained count of an entity. */
export interface Counted {
  /** The entity that has the count: known once it is defined. */
  readonly target: () => Entity;
  readonly field: string;
}
