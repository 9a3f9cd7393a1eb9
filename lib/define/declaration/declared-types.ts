import type { z } from 'zod';
import type { FieldsOf } from '../keys/key-template.ts';
import type { AccessDeclaration } from './access.ts';
import type { Declaration, DeclaredEntity, Options, OptionsWith } from './declaration.ts';
import type { Index, Typed } from './indexes.ts';

/**
 * What the compiler makes of a declaration, which it infers as it is written: sentences about names that are not in the schema, and
 * the types of the store and the client.
 */

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
type MemberOf<Record> = Record[keyof Record];
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

/** Indexes and totals in which only declared fields are named. */
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
/** The sentence takes the place of the source: in that of the whole link, the compiler would not infer the functions. */
type CheckedCopies<Links, Field extends string, Written extends string> = {
  readonly [Name in keyof Links]: {
    readonly [Part in keyof Links[Name]]: Part extends 'copies'
      ? CheckedNames<Links[Name][Part], Written>
      : Part extends 'source'
        ? CheckedNames<Record<Name, Links[Name][Part]>, Field>[Name]
        : Links[Name][Part];
  };
};
type CheckedAccess<Given, Field extends string, IndexName extends string> = {
  readonly [Part in keyof Given]: Part extends 'restricted'
    ? CheckedRules<CheckedNames<Given[Part], Field>, Field>
    : Part extends 'own'
      ? WithIndex<Given[Part], IndexName>
      : Part extends 'set'
        ? CheckedNames<Given[Part], Field>
        : Part extends 'read' | 'write'
          ? CheckedRule<Given[Part], Field>
          : Part extends 'discloses'
            ? CheckedList<Given[Part], Field>
            : Part extends keyof AccessDeclaration
              ? Given[Part]
              : NotAnOption<Part>;
};
type CheckedList<Given, Field extends string> = {
  readonly [Index in keyof Given]: Given[Index] extends Field ? Given[Index] : NotAField<Given[Index] & string>;
};
type CheckedArchive<Given, Field extends string> = {
  readonly [Part in keyof Given]: Part extends 'without' ? CheckedList<Given[Part], Field> : Given[Part];
};
/** Rules by field. A sentence about a name stays. */
type CheckedRules<Given, Field extends string> = {
  readonly [Name in keyof Given]: Given[Name] extends readonly unknown[]
    ? CheckedRule<Given[Name], Field>
    : Given[Name];
};
/** A rule, or a record of rules, whose terms are of fields. */
type CheckedRule<Given, Field extends string> = Given extends readonly unknown[]
  ? { readonly [Index in keyof Given]: CheckedAlternative<Given[Index], Field> }
  : { readonly [Kind in keyof Given]: CheckedRule<Given[Kind], Field> };
type CheckedAlternative<Given, Field extends string> = Given extends { readonly where: infer Terms }
  ? Omit<Given, 'where'> & { readonly where: CheckedNames<Terms, Field> }
  : Given extends { readonly before: unknown }
    ? CheckedRule<Given, Field>
    : Given;
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
        : Option extends 'references' | 'defaults'
          ? CheckedNames<Given[Option], Field>
          : Option extends 'ofUser'
            ? CheckedNames<Given[Option], Field>
            : Option extends 'denormalized'
              ? CheckedCopies<Given[Option], Field, Written>
              : Option extends 'archive'
                ? CheckedArchive<Given[Option], Field | NamesOf<Given, 'attachments'>>
                : Option extends 'access'
                  ? CheckedAccess<Given[Option], Field | NamesOf<Given, 'attachments'>, IndexNameOf<Given>>
                  : Option extends keyof OptionsWith<'namesIndex'>
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

/** The names that an option lists, or that its record has. */
export type NamedBy<Given, Option extends keyof Options> = ListedIn<Of<Given, Option>>;
type ListedIn<Value> = Value extends readonly (infer Name extends string)[] ? Name : keyof Value & string;

type Deciding = OptionsWith<'decides'>;
type DecidedBy<Given> = {
  [Option in keyof Deciding]: FieldsAt<Of<Given, Option>, Deciding[Option]>;
}[keyof Deciding];
/** The fields that a path leads to: see `decides` of an option. */
type FieldsAt<Given, Path> = Path extends '*'
  ? NamesIn<Given>
  : Path extends `*.${infer Rest}`
    ? FieldsAt<MemberOf<Given>, Rest>
    : Path extends `${infer Name}.${infer Rest}`
      ? FieldsAt<Of<Given, Name>, Rest>
      : Of<Given, Path & string> & string;

/** What the typed store and client know of an entity besides its schema and name: see `Typed`. */
export interface TypesBy<Given> {
  /** The templates of its key. */
  readonly partition: Of<Of<Given, 'key'>, 'partition'> & string;
  readonly row: Of<Of<Given, 'key'>, 'row'> & string;
  /** The fields that callers cannot write. */
  readonly decided: DecidedBy<Given>;
  /** The fields that callers may leave out, although every entity has them: taken from the caller, or computed from other fields. */
  readonly filled: NamesIn<Of<Of<Given, 'access'>, 'set', Record<never, never>>> | NamesOf<Given, 'defaults'>;
  /** The totals by name. */
  readonly totals: Of<Given, 'totals', Record<never, never>>;
  /** The name of the parent entity. */
  readonly parent: Of<Of<Given, 'childOf'>, 'name'> & string;
  /** The fields of a vertical split, which only some reads return. */
  readonly apart: EachMember<Of<Given, 'split'>>;
  /** The fields that an archived entity does not have. */
  readonly unarchived: Each<Of<Of<Given, 'archive'>, 'without'>>;
  /** True if rules may name the partitions of the rows that a caller reads. */
  readonly mine: IsListedAsMine<Given>;
  /** The indexes that no rule lets a role list. */
  readonly closed: ClosedIndex<Given>;
  /** The index by which all entities are listed. */
  readonly listedBy: Of<Of<Given, keyof OptionsWith<'listsAll'>>, 'index'> & string;
}

/**
 * What rules on rows let callers list, as far as the compiler can tell: from the fields that an alternative compares, and not from its terms.
 * lib/define/places/reach.ts decides.
 */

/** The alternatives of the rule to read, each a role or one with terms. */
type ReadBy<Given> = Of<Of<Given, 'access'>, 'read'> extends readonly (infer One)[] ? One : never;
/** The fields that each alternative with terms compares. */
type Compared<Given> =
  ReadBy<Given> extends infer One
    ? One extends { readonly lists: 'none' }
      ? never
      : One extends { readonly role: infer Role; readonly where: infer Terms }
        ? {
            readonly role: Role;
            readonly fields: keyof Terms & string;
            readonly isFiltered: One extends { readonly lists: 'filtered' } ? true : false;
          }
        : never
    : never;
type IsWithin<Fields, Named> = [Fields] extends [never] ? false : [Fields] extends [Named] ? true : false;

type PartitionOf<Index> = Index extends Typed<infer Types> ? Of<NonNullable<Types>, 'partition'> : never;
type RowOf<Index> = Index extends Typed<infer Types> ? Of<NonNullable<Types>, 'row'> : never;
type KeyPartition<Given> = Of<Of<Given, 'key'>, 'partition'>;

/** The template of the key, and of each index in partitions of its own. */
type AnyPartition<Given> =
  | KeyPartition<Given>
  | { [Name in keyof IndexesOf<Given>]: PartitionOf<IndexesOf<Given>[Name]> }[keyof IndexesOf<Given>];
/** True if one of the partitions is named by every alternative of a role. */
type IsListedAsMine<Given> = true extends (
  AnyPartition<Given> extends infer Template
    ? Template extends string
      ? NamedByRole<Compared<Given>, FieldsOf<Template>>
      : never
    : never
)
  ? true
  : false;
type NamedByRole<One, Fields, All = One> = One extends { readonly role: infer Role }
  ? false extends NamedByEach<Extract<All, { readonly role: Role }>, Fields>
    ? false
    : true
  : never;
type NamedByEach<One, Fields> = One extends { readonly fields: infer Named } ? IsWithin<Fields, Named> : never;

/** True for each alternative that bounds a list with these templates. */
type Bounds<One, Partition, Row> = One extends { readonly fields: infer Named; readonly isFiltered: infer IsFiltered }
  ? IsFiltered extends true
    ? true
    : Partition extends string
      ? IsWithin<FieldsOf<Partition>, Named> extends true
        ? true
        : FirstFieldOf<Row> extends Named
          ? true
          : false
      : true
  : never;
type FirstFieldOf<Template> = Template extends `${string}{${infer Inner}}${string}` ? FieldsOf<`{${Inner}}`> : never;

/** The indexes that no alternative bounds, if no role reads all rows. */
type ClosedIndex<Given> = [ReadBy<Given>] extends [never]
  ? never
  : [Extract<ReadBy<Given>, string>] extends [never]
    ? {
        [Name in keyof IndexesOf<Given>]: true extends Bounds<
          Compared<Given>,
          [PartitionOf<IndexesOf<Given>[Name]>] extends [never]
            ? KeyPartition<Given>
            : PartitionOf<IndexesOf<Given>[Name]>,
          RowOf<IndexesOf<Given>[Name]>
        >
          ? never
          : Name;
      }[keyof IndexesOf<Given>]
    : never;

/** `string` if the compiler does not know the roles. */
type RoleOf<Given> =
  | RolesIn<Of<Of<Given, 'access'>, 'read' | 'write'>>
  | RolesIn<MemberOf<Of<Of<Given, 'access'>, 'restricted', Record<never, never>>>>;
type RolesIn<Rule> = Rule extends readonly (infer One)[]
  ? RoleIn<One>
  : Rule extends object
    ? RolesIn<Rule[keyof Rule]>
    : never;
type RoleIn<One> = One extends { readonly role: infer Role extends string }
  ? Role
  : One extends { readonly before: unknown }
    ? RolesIn<One>
    : One & string;

/** What `defineEntity` returns. */
export type EntityBy<Name extends string, Shape extends z.ZodRawShape, Given> = DeclaredEntity<
  Shape,
  Name,
  FieldsOf<TypesBy<Given>['partition'] | TypesBy<Given>['row']>,
  IndexesOf<Given>,
  RoleOf<Given>
> &
  Typed<Given>;
