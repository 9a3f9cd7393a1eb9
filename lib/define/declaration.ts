import type { z } from 'zod';
import type { AttachmentDeclaration } from './codec/reference.ts';
import type {
  Access,
  Copied,
  Declared,
  DeclaredEntity,
  DeclaredReference,
  LookupDeclaration,
  Period,
} from './entity.ts';
import type { Index } from './indexes.ts';
import type { FieldsOf } from './keys/key-template.ts';
import type { Total } from './totals.ts';
import type { Typed } from './typed.ts';
import type { Values } from './values.ts';

/**
 * The options of `defineEntity`. `options.ts` says what each accepts at run time, and this file what the compiler accepts. The compiler
 * infers a declaration as it is written; the rules below then compare the names in it with the fields of the schema.
 */

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
  /** Denormalization pattern: fields that are copied from another entity. */
  readonly denormalized?: readonly Copied<Field>[];
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

/** The member of a declaration; `Absent` if it has none. */
type Of<Given, Name extends PropertyKey, Absent = never> = [Given] extends [never]
  ? Absent
  : Name extends keyof Given
    ? Exclude<Given[Name], undefined>
    : Absent;
type NamesIn<Record> = Record extends unknown ? keyof Record & string : never;
type NamesOf<Given, Option extends string> = NamesIn<Of<Given, Option>>;
type Each<List> = List extends readonly (infer Name extends string)[] ? Name : never;
type ListOf<Given, Option extends string> = Each<Of<Given, Option>>;
type EachMember<Lists> = Lists extends unknown ? Each<Lists[keyof Lists]> : never;
type IndexesOf<Given> =
  Of<Given, 'indexes', Record<never, never>> extends infer Indexes extends Readonly<Record<string, Index>>
    ? Indexes
    : never;
/** Without any index, `defineEntity` reports the name. */
type IndexNameOf<Given> = [keyof IndexesOf<Given>] extends [never] ? string : keyof IndexesOf<Given> & string;

/** Sentences for the compiler to show. */
type NotAField<Name extends string> = `"${Name}" is not a field of the schema`;
type NotAKeyField<Name extends string> = `${NotAField<Name>}, or is encrypted`;
type NotAnOption<Name> = `"${Name & string}" is not an option of an entity`;

/** A template whose fields are all accepted; otherwise a sentence. */
type CheckedTemplate<Template, Field extends string> = Template extends string
  ? [Exclude<FieldsOf<Template>, Field>] extends [never]
    ? Template
    : NotAKeyField<Exclude<FieldsOf<Template>, Field>>
  : Template;
type CheckedTemplates<Templates, Field extends string> = {
  readonly [Name in keyof Templates]: CheckedTemplate<Templates[Name], Field>;
};

/** The same for indexes and totals. */
type CheckedParts<Parts, Field extends string> = {
  readonly [Name in keyof Parts]: [Misnamed<Parts[Name], Field>] extends [never]
    ? Parts[Name]
    : NotAKeyField<Misnamed<Parts[Name], Field>>;
};
type Misnamed<Part, Field extends string> = Part extends { readonly uses: readonly (infer Used extends string)[] }
  ? string extends Used
    ? never
    : Exclude<Used, Field>
  : never;

/** An object whose names must all be fields. */
type CheckedNames<Given, Field extends string> = {
  readonly [Name in keyof Given]: Name extends Field
    ? Given[Name]
    : string extends Name
      ? Given[Name]
      : NotAField<Name & string>;
};
type CheckedCopies<Links, Field extends string> = {
  readonly [Position in keyof Links]: {
    readonly [Part in keyof Links[Position]]: Part extends 'copies'
      ? CheckedNames<Links[Position][Part], Field>
      : Links[Position][Part];
  };
};
type CheckedAccess<Given, Field extends string, IndexName extends string> = {
  readonly [Part in keyof Given]: Part extends 'restricted'
    ? CheckedNames<Given[Part], Field>
    : Part extends 'own'
      ? WithIndex<Given[Part], IndexName>
      : Part extends keyof Access
        ? Given[Part]
        : NotAnOption<Part>;
};
type WithIndex<Given, IndexName extends string> = {
  readonly [Part in keyof Given]: Part extends 'index'
    ? IndexName & Given[Part] extends never
      ? IndexName
      : Given[Part]
    : Given[Part];
};

/** A declaration whose names are those of the schema; in place of others, sentences. `Written` are the fields that may be computed. */
type Rules<Given, Field extends string, Written extends string> = {
  readonly [Option in keyof Given]: Option extends 'key'
    ? CheckedTemplates<Given[Option], Exclude<Field, ListOf<Given, 'encrypted'>>>
    : Option extends 'indexes' | 'totals'
      ? CheckedParts<Given[Option], Exclude<Field, ListOf<Given, 'encrypted'>>>
      : Option extends 'derived' | 'counts'
        ? CheckedNames<Given[Option], Written>
        : Option extends 'references'
          ? CheckedNames<Given[Option], Field>
          : Option extends 'denormalized'
            ? CheckedCopies<Given[Option], Written>
            : Option extends 'access'
              ? CheckedAccess<Given[Option], Field | NamesOf<Given, 'attachments'>, IndexNameOf<Given>>
              : Option extends 'lookup'
                ? WithIndex<Given[Option], IndexNameOf<Given>>
                : Option extends keyof Declaration | 'kinds' | 'slots' | 'span'
                  ? Given[Option]
                  : NotAnOption<Option>;
};

/** The declaration, if it keeps the rules. A conditional type, because an intersection would hide the sentences. */
export type Checked<Given, Field extends string, Written extends string = Field> = [Given] extends [
  Rules<Given, Field, Written>,
]
  ? Given
  : Rules<Given, Field, Written>;

/** What the typed store and client know of an entity besides its schema and name: see `Typed`. */
export interface TypesBy<Given> {
  /** The templates of its key. */
  readonly partition: Of<Of<Given, 'key'>, 'partition'> & string;
  readonly row: Of<Of<Given, 'key'>, 'row'> & string;
  readonly encrypted: ListOf<Given, 'encrypted'>;
  readonly large: ListOf<Given, 'large'>;
  readonly attachments: NamesOf<Given, 'attachments'>;
  /** The fields that callers cannot write: derived fields, counts, copies and the clock of an expiry. */
  readonly decided:
    | NamesOf<Given, 'derived'>
    | NamesOf<Given, 'counts'>
    | NamesOf<Of<Of<Given, 'denormalized'>, number>, 'copies'>
    | (Of<Of<Given, 'expiry'>, 'clock'> & string);
  /** The totals by name. */
  readonly totals: Of<Given, 'totals', Record<never, never>>;
  /** The name of the parent entity. */
  readonly parent: Of<Of<Given, 'childOf'>, 'name'> & string;
  /** The groups of a vertical split, and their fields, which only some reads return. */
  readonly groups: NamesOf<Given, 'split'>;
  readonly apart: EachMember<Of<Given, 'split'>>;
  /** The index of the lookup. */
  readonly lookup: Of<Of<Given, 'lookup'>, 'index'> & string;
}

/** `string` if the compiler does not know the roles. */
type RoleOf<Given> = ListOf<Of<Given, 'access'>, 'read' | 'write'> | EachMember<Of<Of<Given, 'access'>, 'restricted'>>;

/** What `defineEntity` returns. */
export type EntityBy<Name extends string, Shape extends z.ZodRawShape, Given> = DeclaredEntity<
  Shape,
  Name,
  FieldsOf<TypesBy<Given>['partition'] | TypesBy<Given>['row']>,
  IndexesOf<Given>,
  RoleOf<Given>
> &
  Typed<Given>;
