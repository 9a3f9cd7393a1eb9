import { z } from 'zod';
import type { Values } from '../../base/values.ts';
import { present, withoutPrototype } from '../../base/without-prototype.ts';
import type { CalendarUnit } from '../keys/calendar.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import { anything, byName, declaredEntity, names, optionsOf } from '../schema/options.ts';
import type { Index } from './indexes.ts';
import type { AttachmentDeclaration } from './reference.ts';
import type { Total } from './totals.ts';

/** What a declaration says: the options of `defineEntity`, what each accepts and means if it is absent, and the compiled form. */

/** Something for each of some fields. The editor completes their names, and a rule explains other names. */
type ByField<Field extends string, Value> = { readonly [Each in Field]?: Value | undefined } & {
  readonly [name: string]: Value | undefined;
};
type Compute = (values: Values) => unknown;

export interface Options<Field extends string = string> {
  /** Lower-case letters and digits. */
  readonly table: string;
  /** Templates of fields, such as `empid_{employeeId}`: see `lib/define/keys/key-template.ts`. */
  readonly key: { readonly partition: string; readonly row: string };
  /** Further ways to read the entity: `intraPartitionIndex`, `interPartitionIndex` and `indexEntity` declare them. */
  readonly indexes?: Readonly<Record<string, Index>>;
  /**
   * Maintained totals: the number of entities of each group across partitions, with exact sums and the extremes of their
   * fields. The engine keeps them like indexes in other partitions.
   */
  readonly totals?: Readonly<Record<string, Total>>;
  /**
   * Encrypted properties pattern: storage receives only the ciphertext of these texts. A replace of the entity sets them
   * too. They are omitted for callers without the roles in `access.restricted`. Using one in a key or an index is a compile
   * error.
   */
  readonly encrypted?: readonly Field[];
  /** Large entities pattern: files, such as a photo. Each has its own routes and a field of its name that describes it. */
  readonly attachments?: Readonly<Record<string, AttachmentDeclaration>>;
  /** Large entities pattern: texts that may be longer than one property holds. They are stored in several properties or in a blob. */
  readonly large?: readonly Field[];
  /**
   * Vertical split: groups of rarely read fields, each in a row of its own beside the entity. A read includes a group only if it
   * asks for the group or for a field of it; a write of other fields neither reads nor writes its row.
   */
  readonly split?: Readonly<Record<string, readonly Field[]>>;
  /**
   * Wide entities pattern: the fields may take several rows of the partition, up to 2,000 fields and 3.5 MiB. One range query reads
   * them, and one transaction changes them.
   */
  readonly wide?: boolean;
  /** Increased when the meaning of stored data changes; `upgrades` then converts what earlier versions stored. */
  readonly version?: number;
  /** The upgrade to the next version, by the version it starts from. */
  readonly upgrades?: Readonly<Record<number, (values: Values) => Values>>;
  /** `POST …/archive` moves an entity to this table, under the same key. */
  readonly archive?: { readonly table: string };
  /** `POST …/move` changes these fields of the partition key. */
  readonly movable?: readonly Field[];
  /** High volume delete pattern: a table for each day, month or year, dropped as a whole past retention. */
  readonly period?: Period<Field>;
  /**
   * Expiry: entities that have not changed for `days` whole days are deleted with their index entries. `clock` is a
   * `z.iso.date()` field that the engine sets to the UTC day of each change through the API.
   */
  readonly expiry?: { readonly days: number; readonly clock: Field };
  /**
   * Denormalization pattern: fields that are copied from another entity, by the field that refers to it. No `ByField`, because the
   * compiler would not infer the functions of a link that may be undefined.
   */
  readonly denormalized?: { readonly [Each in Field]?: Copied } & { readonly [name: string]: Copied };
  /** Fields whose value must be that of an existing entity when they are written. */
  readonly references?: ByField<Field, DeclaredReference>;
  /**
   * Compound key pattern: the row key of this entity begins with its parent's row key, in the same table and partition. It
   * is read, moved, archived and deleted with its parent, and cannot exist without it.
   */
  readonly childOf?: DeclaredEntity;
  /** Fields that are computed from others and cannot be written. Return `undefined` for no value. */
  readonly derived?: ByField<Field, Compute>;
  /** Fields that count the entities of another declaration in the same table and partition. They cannot be written. */
  readonly counts?: ByField<Field, Declared>;
  readonly access: Access<string, string, DeclaredEntity>;
  /** Seconds for which a client may reuse a response without a new request. By default it revalidates each time. */
  readonly maxAge?: number;
  /**
   * Lookup table: `GET` of the entity's own path lists all entities from the memory of the process. `index` has one partition with
   * a copy of every entity.
   */
  readonly lookup?: LookupDeclaration;
}

export interface Declaration<Shape extends z.ZodRawShape = z.core.$ZodLooseShape>
  extends Options<keyof Shape & string> {
  /** Unknown fields are rejected. Every field is stored under its own name. */
  readonly schema: z.ZodObject<Shape>;
}

type OptionsOf<Declared> = Record<keyof NonNullable<Declared>, z.ZodType>;

const AccessOptions = optionsOf({
  read: names,
  write: names,
  restricted: z.record(z.string(), names.optional()).optional(),
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
} satisfies OptionsOf<Access>);

/** An option at run time. */
interface OptionForm {
  /** Numbers and names with `anything` have a check of their own, which says what is accepted. */
  readonly accepts: z.ZodType;
  /** What an entity without the option has; undefined by default. */
  readonly absent?: unknown;
  /** True if an archive is without the option: its entities can only be read and deleted. */
  readonly notInArchive?: true;
}

/** Names of a record come from callers and files, so it has no prototype. */
const NONE = Object.freeze(withoutPrototype({}));
const EMPTY = Object.freeze([]);

/** Every option. A union and a series accept some of them. */
export const ENTITY_OPTIONS = {
  schema: { accepts: anything },
  table: { accepts: z.string() },
  key: { accepts: optionsOf({ partition: z.string(), row: z.string() } satisfies OptionsOf<Declaration['key']>) },
  indexes: { accepts: byName.optional(), absent: NONE, notInArchive: true },
  totals: { accepts: byName.optional(), absent: NONE, notInArchive: true },
  encrypted: { accepts: names.optional(), absent: EMPTY },
  attachments: {
    accepts: z
      .record(
        z.string(),
        optionsOf({
          container: z.string(),
          maxBytes: anything,
          types: names,
          public: z.boolean().optional(),
          maxAge: anything,
        } satisfies OptionsOf<AttachmentDeclaration>),
      )
      .optional(),
    absent: NONE,
  },
  large: { accepts: names.optional(), absent: EMPTY },
  split: { accepts: z.record(z.string(), names).optional(), absent: NONE },
  wide: { accepts: z.boolean().optional(), absent: false },
  version: { accepts: anything, absent: 1 },
  upgrades: { accepts: byName.optional(), absent: NONE },
  archive: {
    accepts: optionsOf({ table: z.string() } satisfies OptionsOf<Declaration['archive']>).optional(),
    notInArchive: true,
  },
  movable: { accepts: names.optional(), absent: EMPTY, notInArchive: true },
  period: {
    accepts: optionsOf({
      per: anything,
      field: z.string(),
      keep: anything,
      archiveTo: anything,
    } satisfies OptionsOf<Period>).optional(),
  },
  expiry: {
    accepts: optionsOf({ days: anything, clock: z.string() } satisfies OptionsOf<Declaration['expiry']>).optional(),
    notInArchive: true,
  },
  denormalized: {
    accepts: z
      .record(
        z.string(),
        optionsOf({
          source: declaredEntity({ isFunction: true }),
          by: z.string().optional(),
          copies: byName,
          fanOut: z.boolean().optional(),
        } satisfies OptionsOf<Copied>).optional(),
      )
      .optional(),
    absent: NONE,
    notInArchive: true,
  },
  references: {
    accepts: z
      .record(
        z.string(),
        optionsOf({
          to: declaredEntity({ isFunction: true }),
          by: z.string().optional(),
          onDelete: anything,
        } satisfies OptionsOf<DeclaredReference>).optional(),
      )
      .optional(),
    absent: NONE,
    notInArchive: true,
  },
  childOf: { accepts: declaredEntity().optional() },
  derived: { accepts: byName.optional(), absent: NONE },
  counts: { accepts: z.record(z.string(), declaredEntity({ isFunction: true }).optional()).optional(), absent: NONE },
  access: { accepts: AccessOptions },
  maxAge: { accepts: anything },
  lookup: {
    accepts: optionsOf({ index: z.string(), maxAge: anything } satisfies OptionsOf<LookupDeclaration>).optional(),
    notInArchive: true,
  },
} satisfies Readonly<Record<keyof Declaration, OptionForm>>;

/** The options that an archive is without, as they are then. */
export const ABSENT_IN_ARCHIVE: object = Object.fromEntries(
  Object.entries<OptionForm>(ENTITY_OPTIONS).flatMap(([name, { absent, notInArchive }]) =>
    notInArchive ? [[name, absent]] : [],
  ),
);

/** The options of a declaration, each with what it means if it is absent. A member of a record that has no value is left out. */
export function withDefaults(options: Omit<Options, 'key'>): Omit<Compiled, 'key'> {
  const compiled = Object.entries<OptionForm>(ENTITY_OPTIONS).map(([name, { absent }]) => {
    const value: unknown = options[name as keyof typeof options];
    return [name, value === undefined ? absent : absent === NONE ? present(Object(value)) : value];
  });
  const { schema: _schema, key: _key, ...all } = Object.fromEntries(compiled);
  return all;
}

/** The schema of a declaration with these options. */
export function acceptedBy(forms: Readonly<Record<string, OptionForm>>, others: z.ZodRawShape = {}) {
  return optionsOf({
    ...others,
    ...Object.fromEntries(Object.entries(forms).map(([name, { accepts }]) => [name, accepts])),
  });
}

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
> extends Omit<Compiled, 'key' | 'indexes' | 'access'> {
  readonly name: Name;
  readonly schema: z.ZodObject<Shape>;
  /** Set for an entity of several kinds: the schema that distinguishes them by `kind` (inheritance pattern). */
  readonly union: z.ZodType | undefined;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The fields of the key in the order of a path: the partition's first. */
  readonly keyFields: readonly KeyField[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly indexes: Of;
  readonly access: Access<string, Role>;
  /** Set for a data series: its counts. */
  readonly series: Slots | undefined;
}

type Indexes = Readonly<Record<string, Index>>;
/** The options as `defineEntity` compiles them. */
export type Compiled = {
  readonly [Name in keyof Options]-?: 'absent' extends keyof (typeof ENTITY_OPTIONS)[Name]
    ? Present<Exclude<Options[Name], undefined>>
    : Record<never, never> extends Pick<Options, Name>
      ? Exclude<Options[Name], undefined> | undefined
      : Options[Name];
};
type Present<Value> = string extends keyof Value
  ? Readonly<Record<string, Exclude<Value[keyof Value & string], undefined>>>
  : Value;
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

/** A small entity that each process keeps in memory as one list, which it reads through an index with one partition. */
export interface LookupDeclaration<IndexName extends string = string> {
  readonly index: IndexName;
  /** Seconds after which a process reads the list again; 30 by default. */
  readonly maxAge?: number | undefined;
}

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

/**
 * Another declaration, or a function that returns it. Of two declarations that refer to each other, the first needs the function:
 * `(): DeclaredEntity => departments`. Without its return type, the type of each declaration would follow from the other.
 */
export type Declared = DeclaredEntity | (() => DeclaredEntity);

export function resolveDeclared(declared: Declared): DeclaredEntity {
  return typeof declared === 'function' ? declared() : declared;
}

/** A declared link of the denormalization pattern. */
export interface Copied {
  /** Copied from. */
  readonly source: Declared;
  /**
   * The key field of the source that the field contains: by default the one of the same name, or else the last. The other key fields
   * of the source are fields of the same names.
   */
  readonly by?: string | undefined;
  readonly copies: Readonly<Record<string, (source: Values) => unknown>>;
  /**
   * Without it, one row of the source's partition has copies, which change in the transaction of the source. With it, any number
   * of entities of any partition have copies, which a queue updates after a change of the source.
   */
  readonly fanOut?: boolean | undefined;
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
