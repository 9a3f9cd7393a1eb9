import { z } from 'zod';
import { present, type Values, withoutPrototype } from '../../base/values.ts';
import type { CalendarUnit } from '../keys/calendar.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import { anything, byName, declaredEntity, nameOfEntity, names, optionsOf } from '../schema/options.ts';
import { type Access, type AccessDeclaration, AccessOptions, RulesDescription } from './access.ts';
import { AttachmentDeclaration } from './attachment.ts';
import { type Existing, ExistingOptions } from './existing.ts';
import type { Expiry } from './expiry.ts';
import { type Index, IndexDescription, TemplateDescription } from './indexes.ts';
import { type Total, TotalDescription } from './totals.ts';

/** What a declaration says: the options of `defineEntity`, what each accepts and means if it is absent, and the compiled form. */

/** Something for each of some fields. The editor completes their names, and a rule explains other names. */
type ByField<Field extends string, Value> = { readonly [Each in Field]?: Value | undefined } & {
  readonly [name: string]: Value | undefined;
};
type Compute = (values: Values) => unknown;
/** A function of the fields of any schema. */
type Check = (values: never) => boolean;
/** Functions of the fields of a schema, by their messages. */
export type ChecksOf<Shape extends z.ZodRawShape> = Readonly<
  Record<string, (values: z.output<z.ZodObject<Shape>>) => boolean>
>;

/** What becomes of a row when the data of its user is erased: deleted, kept, or changed to these values, of which null removes a field. */
export type Erasing = 'delete' | 'keep' | Readonly<Record<string, unknown>>;

/** What a declaration refers to. The links of a model put entities in its place. */
interface Unlinked {
  readonly archive: { readonly table: string; readonly without?: readonly string[] };
  readonly copied: Copied;
  readonly reference: DeclaredReference;
  readonly counted: Declared;
  readonly other: DeclaredEntity;
}

type Others = { readonly [Each in keyof Unlinked]: unknown };

/** `Other` is what the options have that refer to other declarations. */
export interface Options<Field extends string = string, Other extends Others = Unlinked> {
  /**
   * 3 to 55 lower-case letters and digits. Entities may share a table if no two of their rows can have the same key; those of one partition then
   * change in one transaction.
   */
  readonly table: string;
  /**
   * True if other programs also write to the table. A write then reads its row first, so that it never replaces or deletes one of theirs. By
   * default the table is the app's alone.
   */
  readonly sharedTable?: boolean;
  /**
   * A table that another program has filled, and may go on filling, with rows of its own form. The engine reads and writes them as they are: names and types
   * of properties, keys, properties that no field names, and rows that are none of the entity.
   */
  readonly existing?: Existing<Field>;
  /**
   * Key templates, such as `empid_{employeeId}`, for the partition key and the row key. `appends` says that the partition key is
   * meant to begin with a time, so that all writes of the moment go to one end of the table. `former` is the key of the same fields under
   * which entities are stored until `npm run rekey` has moved them.
   */
  readonly key: {
    readonly partition: string;
    readonly row: string;
    readonly appends?: boolean;
    readonly former?: { readonly partition: string; readonly row: string };
  };
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
  /** Texts of `large` that are compressed when they are in a blob, as new texts are written. */
  readonly compressed?: readonly Field[];
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
  /** `POST …/archive` moves an entity to this table, under the same key, and deletes the fields and files named in `without`. */
  readonly archive?: Other['archive'];
  /** `POST …/move` changes these fields of the partition key. */
  readonly movable?: readonly Field[];
  /** High volume delete pattern: a table for each day, month or year, dropped as a whole past retention. */
  readonly period?: Period<Field>;
  /**
   * Expiry: entities that have not changed for `days` whole days are deleted with their index entries. `clock` is a
   * `z.iso.date()` field that the engine sets to the UTC day of each change through the API. Or `at`: a `z.iso.datetime()` field with
   * the instant from which on the entity is absent.
   */
  readonly expiry?: Expiry<Field>;
  /** Denormalization pattern: fields that are copied from another entity, by the field that refers to it. */
  // No `ByField`, because the compiler would not infer the functions of a link that may be undefined.
  readonly denormalized?: { readonly [Each in Field]?: Other['copied'] } & { readonly [name: string]: Other['copied'] };
  /** Fields whose value must be that of an existing entity when they are written. */
  readonly references?: ByField<Field, Other['reference']>;
  /**
   * Compound key pattern: the row key of this entity begins with its parent's row key, in the same table and partition. It
   * is read, moved, archived and deleted with its parent, and cannot exist without it.
   */
  readonly childOf?: Other['other'];
  /** Fields that are computed from others and cannot be written. Return `undefined` for no value. */
  readonly derived?: ByField<Field, Compute>;
  /**
   * Values of required fields that a write of a whole entity may leave out, such as an id that is a hash of other fields. The engine
   * computes them from the fields that are written, and then they are ordinary fields: a patch of the others does not change them. The
   * same fields must give the same value. A random or timed one is a default of the schema.
   */
  readonly defaults?: ByField<Field, Compute>;
  /**
   * What the fields of an entity must be together. Each function has the message for a caller whose entity it rejects by `false`, such as
   * `'to must be after from'`. It gets the fields that callers write, without encrypted and large ones, those of a split and files.
   */
  readonly checks?: Readonly<Record<string, Check>>;
  /**
   * The fields that have the subject of a user, each with what becomes of the row when the user's data is erased. The rows are listed by the
   * partition key of the entity or of an index, which is the field alone. If a model has the option, each field that a rule takes for the subject needs it.
   */
  readonly ofUser?: ByField<Field, Erasing>;
  /** Fields that count the entities of another declaration in the same table and partition. They cannot be written. */
  readonly counts?: ByField<Field, Other['counted']>;
  /** Who may read and write: roles, and rules that limit a role to some rows. */
  readonly access: AccessDeclaration<string, string, Other['other']>;
  /** The text that names an entity for people, such as `title`. By default `name`, `title` or `email`, if the schema has such a text. */
  readonly label?: Field;
  /** Seconds for which a client may reuse a response without a new request. By default it revalidates each time. */
  readonly maxAge?: number;
  /**
   * Lookup table: `GET` of the entity's own path lists all entities from the memory of the process. `index` has one partition with
   * a copy of every entity.
   */
  readonly lookup?: z.output<typeof LookupOptions>;
}

export interface Declaration<Shape extends z.ZodRawShape = z.core.$ZodLooseShape>
  extends Options<keyof Shape & string> {
  /** A `z.object` of zod. Unknown fields are rejected. Every field is stored under its own name. */
  readonly schema: z.ZodObject<Shape>;
}

type OptionsOf<Declared> = Record<keyof NonNullable<Declared>, z.ZodType>;

/** Seconds after which a process reads the list of a lookup again, by default. */
export const LOOKUP_MAX_AGE_S = 30;

const LookupOptions = optionsOf({
  index: z.string(),
  /** Seconds after which a process reads the list again; 30 by default. */
  maxAge: anything<number>().optional(),
});

/** An option at run time. */
interface OptionForm {
  /** Numbers and names with `anything` have a check of their own, which says what is accepted. */
  readonly accepts: z.ZodType;
  /** What an entity without the option has; undefined by default. */
  readonly absent?: unknown;
  /** True if an archive is without the option: its entities can only be read and deleted. */
  readonly notInArchive?: true;
  /** True if an entity of several kinds cannot have the option. */
  readonly notInUnion?: true;
  /** True if a table of another program cannot have it: it needs rows of another form. */
  readonly notInExisting?: true;
  /** True if a series has the option. */
  readonly inSeries?: true;
  /** True if the option refers to declarations, in whose place a model has its entities. */
  readonly isLinked?: true;
  /** True if its members are functions of the fields, or have one as `when`. The functions see only what readers of the result may see. */
  readonly isComputed?: true;
  /** What `GET /api/model` returns of the option, from its compiled and linked form. Without it, nothing. */
  readonly described?: z.ZodType;
  /** What the model guard stores of the option as it is, to compare it with that of the next deployment. */
  readonly remembered?: z.ZodType;
  /**
   * The fields that callers cannot write: the path to a member whose value is a field, such as `clock`, or to members whose names are
   * fields. `*` stands for every name. The compiler would keep no path of the type `string`.
   */
  readonly decides?: Uncapitalize<string>;
  /** True if its member `index` names an index of the entity. */
  readonly namesIndex?: true;
  /** True if `GET` of the entity's own path lists all entities, in the order of the index that its member `index` names. */
  readonly listsAll?: true;
  /** What `GET /api/model` says of the fields that the option names. */
  readonly marks?: Readonly<Record<string, z.ZodBoolean>>;
}

/** Names of a record come from callers and files, so it has no prototype. */
const NONE = Object.freeze(withoutPrototype({}));
const EMPTY = Object.freeze([]);
const fieldNames = z.array(z.string());
/** A field of a split has another row, so it is read on demand like a large text. */
const APART = { large: z.boolean().describe('A large text, or a field of a split: stored apart') };

/** Every option, besides its type in `Options`. Nothing else lists options: `optionsWith` returns those with a flag or a part. */
const ENTITY_OPTIONS = {
  schema: { accepts: anything(), inSeries: true },
  table: { accepts: z.string(), inSeries: true, remembered: z.string() },
  sharedTable: { accepts: z.boolean().optional(), inSeries: true },
  existing: { accepts: ExistingOptions.optional(), notInArchive: true, notInUnion: true },
  key: {
    accepts: optionsOf({
      partition: z.string(),
      row: z.string(),
      appends: z.boolean().optional(),
      former: optionsOf({ partition: z.string(), row: z.string() }).optional(),
    } satisfies OptionsOf<Declaration['key']>),
    inSeries: true,
    described: z.object({
      fields: fieldNames.describe('In the order of the path'),
      partition: TemplateDescription,
      row: TemplateDescription,
    }),
  },
  indexes: {
    accepts: byName.optional(),
    absent: NONE,
    notInArchive: true,
    isComputed: true,
    described: z.record(z.string(), IndexDescription),
  },
  totals: {
    accepts: byName.optional(),
    absent: NONE,
    notInArchive: true,
    isComputed: true,
    described: z.record(z.string(), TotalDescription),
  },
  encrypted: {
    notInExisting: true,
    accepts: names.optional(),
    absent: EMPTY,
    notInUnion: true,
    marks: { encrypted: z.boolean() },
  },
  attachments: {
    notInExisting: true,
    accepts: z.record(z.string(), AttachmentDeclaration).optional(),
    absent: NONE,
    described: z.record(
      z.string(),
      z.object({
        maxBytes: z.int(),
        types: fieldNames,
        public: z.boolean().prefault(false).describe('Readable without a token'),
        maxAge: z.int().optional(),
      }),
    ),
  },
  large: {
    notInExisting: true,
    accepts: names.optional(),
    absent: EMPTY,
    notInUnion: true,
    marks: APART,
  },
  compressed: { accepts: names.optional(), absent: EMPTY, notInUnion: true },
  split: {
    notInExisting: true,
    accepts: z.record(z.string(), names).optional(),
    absent: NONE,
    notInUnion: true,
    marks: APART,
    described: z.record(z.string(), fieldNames).describe('The fields of each group, which a read returns on demand'),
  },
  wide: {
    notInExisting: true,
    accepts: z.boolean().optional(),
    absent: false,
    notInUnion: true,
    described: z.boolean().describe('Its fields take several rows, so filters compare key fields only'),
  },
  version: { notInExisting: true, accepts: anything(), absent: 1, described: z.int(), remembered: z.number() },
  upgrades: { accepts: byName.optional(), absent: NONE },
  archive: {
    notInExisting: true,
    accepts: optionsOf({
      table: z.string(),
      without: names.optional(),
    } satisfies OptionsOf<Declaration['archive']>).optional(),
    notInArchive: true,
    isLinked: true,
    described: nameOfEntity.optional().describe('The name of the archive'),
  },
  movable: {
    notInExisting: true,
    accepts: names.optional(),
    absent: EMPTY,
    notInArchive: true,
    described: fieldNames.describe('The fields that a move may change'),
  },
  period: {
    notInExisting: true,
    accepts: optionsOf({
      per: anything(),
      field: z.string(),
      keep: anything(),
      archiveTo: anything(),
    } satisfies OptionsOf<Period>).optional(),
    described: z
      .object({
        per: z.string(),
        field: z.string(),
        keep: z.int(),
        archiveTo: z.literal('blob').optional().describe('Where tables past retention go before they are deleted'),
      })
      .optional(),
  },
  expiry: {
    notInExisting: true,
    accepts: optionsOf({
      days: anything(),
      clock: z.string().optional(),
      at: z.string().optional(),
      table: z.string().optional(),
    } satisfies OptionsOf<Declaration['expiry']>)
      .refine(
        ({ days, clock, at }) => (at === undefined ? clock !== undefined : days === undefined && clock === undefined),
        {
          error: 'days and clock are accepted, or at alone',
        },
      )
      .optional(),
    notInArchive: true,
    decides: 'clock',
    described: z.union([z.object({ days: z.int(), clock: z.string() }), z.object({ at: z.string() })]).optional(),
  },
  denormalized: {
    notInExisting: true,
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
    isLinked: true,
    decides: '*.copies.*',
  },
  references: {
    accepts: z
      .record(
        z.string(),
        optionsOf({
          to: declaredEntity({ isFunction: true }),
          by: z.string().optional(),
          onDelete: anything(),
          unseen: z.boolean().optional(),
        } satisfies OptionsOf<DeclaredReference>).optional(),
      )
      .optional(),
    absent: NONE,
    notInArchive: true,
    isLinked: true,
    described: z
      .record(z.string(), z.object({ to: nameOfEntity, by: z.string() }))
      .describe('The entity that a field refers to, and the field of that entity with the same value, by the field'),
  },
  childOf: { notInExisting: true, accepts: declaredEntity().optional(), isLinked: true },
  derived: {
    accepts: byName.optional(),
    absent: NONE,
    isComputed: true,
    decides: '*',
    marks: { derived: z.boolean().describe('Computed from other fields; cannot be written') },
  },
  defaults: { accepts: byName.optional(), absent: NONE, notInArchive: true, isComputed: true },
  checks: {
    accepts: z
      .record(
        z.string(),
        z.custom<Check>((given) => typeof given === 'function', { error: 'needs a function of the fields' }),
      )
      .refine((given) => !('' in given), { error: 'needs a message for each function' })
      .optional(),
    absent: NONE,
    notInArchive: true,
    described: z
      .preprocess((checks) => Object.keys(Object(checks)), z.array(z.string()))
      .describe('What the fields must be together, in words'),
  },
  ofUser: {
    accepts: z
      .record(
        z.string(),
        z.union([z.enum(['delete', 'keep']), z.record(z.string(), z.unknown())], {
          error: 'needs "delete", "keep" or the values to set',
        }),
      )
      .optional(),
    absent: NONE,
    inSeries: true,
  },
  counts: {
    notInExisting: true,
    accepts: z.record(z.string(), declaredEntity({ isFunction: true }).optional()).optional(),
    absent: NONE,
    isLinked: true,
    decides: '*',
    described: z.record(z.string(), nameOfEntity).describe('The counted entity, by the field with the count'),
  },
  access: {
    accepts: AccessOptions,
    inSeries: true,
    isLinked: true,
    // Without `verifiedBy`, which concerns the issuer of tokens and no client.
    described: z.object({
      read: fieldNames,
      write: fieldNames,
      own: z
        .union([
          z.object({ claim: z.string(), index: z.string() }),
          z.object({ through: nameOfEntity, permissions: z.string() }),
        ])
        .optional(),
      writtenByClients: z.boolean().describe('Clients with a grant write rows that nothing validates'),
      rules: RulesDescription.describe('Who may do what, and with which rows'),
      mine: fieldNames
        .optional()
        .describe('The roles for which the path of the entity lists all rows that the rules let them read'),
    }),
  },
  label: {
    accepts: z.string().optional(),
    described: z.string().optional().describe('The field whose text names an entity for people'),
  },
  maxAge: { accepts: anything(), described: z.int().optional() },
  lookup: {
    accepts: LookupOptions.optional(),
    notInArchive: true,
    namesIndex: true,
    listsAll: true,
    described: z
      .object({
        index: z.string(),
        maxAge: z.int().prefault(LOOKUP_MAX_AGE_S).describe('Seconds after which a process reads the list again'),
      })
      .optional()
      .describe('Set for a lookup table, which is listed as a whole'),
  },
} satisfies Readonly<Record<keyof Declaration, OptionForm>>;

type Forms = typeof ENTITY_OPTIONS;
/** The options that have this part, by name. */
export type OptionsWith<Part extends keyof OptionForm> = {
  readonly [Name in keyof Forms as Part extends keyof Forms[Name] ? Name : never]: Part extends keyof Forms[Name]
    ? Forms[Name][Part]
    : never;
};

/** This part of each option that has it, by the name of the option. */
export function optionsWith<Part extends keyof OptionForm>(part: Part): OptionsWith<Part> {
  const forms = Object.entries<OptionForm>(ENTITY_OPTIONS).filter(([, form]) => part in form);
  const parts: unknown = Object.fromEntries(forms.map(([name, form]) => [name, form[part]]));
  return parts as OptionsWith<Part>;
}

/** The options that have a flag, as they are in an entity without them. */
export function absentOptions(flag: 'notInArchive' | 'isLinked'): object {
  const forms = Object.entries<OptionForm>(ENTITY_OPTIONS).filter(([, form]) => form[flag]);
  return Object.fromEntries(forms.map(([name, { absent }]) => [name, absent]));
}

/** The options of a declaration, each with what it means if it is absent. A member of a record that has no value is left out. */
export function withDefaults(options: Omit<Options, 'key'>): Compiled {
  const compiled = Object.entries<OptionForm>(ENTITY_OPTIONS).map(([name, { absent }]) => {
    const value: unknown = options[name as keyof typeof options];
    return [name, value === undefined ? absent : absent === NONE ? present(Object(value)) : value];
  });
  const { schema: _schema, key: _key, ...all } = Object.fromEntries(compiled);
  return all;
}

/** The schema of a declaration with the options of an entity that have, or have not, a flag, and with others. */
export function acceptedOptions(isAccepted: (form: OptionForm) => unknown, others: z.ZodRawShape = {}) {
  const forms = Object.entries<OptionForm>(ENTITY_OPTIONS).filter(([, form]) => isAccepted(form));
  return optionsOf({ ...others, ...Object.fromEntries(forms.map(([name, { accepts }]) => [name, accepts])) });
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
> extends Compiled,
    Pick<Declaration<Shape>, 'schema'> {
  readonly name: Name;
  /** Set for an entity of several kinds: the schema that distinguishes them by `kind` (inheritance pattern). */
  readonly union: z.ZodType | undefined;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The key under which entities may still be stored. */
  readonly formerKey: { readonly partition: KeyTemplate; readonly row: KeyTemplate } | undefined;
  /** The fields of the key in the order of a path: the partition's first. */
  readonly keyFields: readonly KeyField[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly indexes: Of;
  readonly access: Access<string, Role, DeclaredEntity>;
  /** Set for a data series: its counts. */
  readonly series: Slots | undefined;
}

type Indexes = Readonly<Record<string, Index>>;
/** The options as `defineEntity` compiles them. The key becomes two templates. */
export type Compiled<Other extends Others = Unlinked> = {
  readonly [Name in keyof Options<string, Other> as Exclude<Name, 'key'>]-?: 'absent' extends keyof Forms[Name]
    ? Present<Exclude<Options<string, Other>[Name], undefined>>
    : Record<never, never> extends Pick<Options<string, Other>, Name>
      ? Exclude<Options<string, Other>[Name], undefined> | undefined
      : Options<string, Other>[Name];
};
type Present<Value> = string extends keyof Value
  ? Readonly<Record<string, Exclude<Value[keyof Value & string], undefined>>>
  : Value;
/** Each calendar period (UTC) has a table of its own, which is dropped as a whole. */
interface Period<Field extends string = string> {
  /** `day`, `month` or `year` of UTC: the time that one table holds. */
  readonly per: CalendarUnit;
  /** The key field that chooses the period: an ISO instant or date. */
  readonly field: Field;
  /** How many whole periods are kept besides the current one: up to 36,500 days, 1,200 months or 100 years. */
  readonly keep: number;
  /** `'blob'`: the rows of a table are stored in a compressed blob, which is verified before the table is dropped. */
  readonly archiveTo?: 'blob' | undefined;
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
type Declared = DeclaredEntity | (() => DeclaredEntity);

export function resolveDeclared(declared: Declared): DeclaredEntity {
  return typeof declared === 'function' ? declared() : declared;
}

/** A declared link of the denormalization pattern. */
export interface Copied {
  /** The entity from which fields are copied. */
  readonly source: Declared;
  /**
   * The key field of the source that the field contains: by default the one of the same name, or else the last. The other key fields
   * of the source are fields of the same names.
   */
  readonly by?: string | undefined;
  /** For each copied field, a function of the source. */
  readonly copies: Readonly<Record<string, (source: Values) => unknown>>;
  /**
   * Without it, one row of the source's partition has copies, which change in the transaction of the source. With it, any number
   * of entities of any partition have copies, which a queue updates after a change of the source.
   */
  readonly fanOut?: boolean | undefined;
}

/** A field that refers to an entity: its value is the value of a field of that entity. */
export interface DeclaredReference {
  /** The entity that must exist. */
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
  /**
   * True if callers may refer to an entity that they cannot read. A write then tells them whether the entity exists. By default such an
   * entity is as absent.
   */
  readonly unseen?: boolean;
}
