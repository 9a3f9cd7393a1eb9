import { z } from 'zod';
import { compileTemplate, type FieldsOf, type KeyTemplate } from '../keys/key-template.ts';
import { anything, buildPart, names, optionsOf } from '../schema/options.ts';

/**
 * Types that a declaration carries for the typed store and client. They exist only for the compiler; no value has this
 * property.
 */
declare const types: unique symbol;

export interface Typed<Types> {
  readonly [types]?: Types;
}

export type TypesOf<Declared> = Declared extends Typed<infer Types> ? NonNullable<Types> : never;

/** The types of an index besides its kind. */
export interface IndexTypes {
  /** The template of the index's own partition key; undefined for an index in the entity's partition. */
  readonly partition: string | undefined;
  readonly row: string;
  readonly unique: boolean;
  /** The fields of a partial copy; undefined if a read returns whole entities. */
  readonly copies: string | undefined;
}

/** The fields that a copy contains besides the key of its entity. */
type Copies<Field extends string> = 'everything' | 'keys' | readonly Field[];

/** Who writes the index entries of a change: its writer, before it returns, or the queue function afterwards. */
type Settle = 'inline' | 'queue';

/** The location of an index outside the partition of its entities. */
interface Remote {
  readonly table: string;
  readonly partition: KeyTemplate;
}

/**
 * Intra-partition secondary index pattern: a copy of the entity in the same partition under another row key. The same
 * entity group transaction changes both, so they always agree.
 */
export interface IntraPartitionIndex<Field extends string = string> {
  readonly kind: 'intra-partition';
  readonly remote: undefined;
  readonly row: KeyTemplate;
  readonly when: Condition | undefined;
  readonly copies: Copies<string>;
  /** The fields it depends on. The compiler checks them against the schema. */
  readonly uses: readonly Field[];
}

/**
 * Inter-partition secondary index pattern: a copy in another partition or table, kept by an eventual transaction. With
 * `unique`, the row is claimed before the entity is written, so that no two entities share a value.
 */
export interface InterPartitionIndex<Field extends string = string> {
  readonly kind: 'inter-partition';
  readonly remote: Remote;
  readonly row: KeyTemplate;
  readonly unique: boolean;
  readonly settle: Settle;
  readonly when: Condition | undefined;
  readonly copies: Copies<string>;
  readonly uses: readonly Field[];
}

/**
 * Index entities pattern: one row lists the entities that share a value. It is in the entity's own partition (changed in
 * the same transaction, under the list's ETag) or, with `table`, in another one (changed through the queue).
 */
export interface IndexEntity<Field extends string = string> {
  readonly kind: 'index-entity';
  readonly remote: Remote | undefined;
  readonly row: KeyTemplate;
  /** The text that the list stores for each entity: enough to find it. */
  readonly holds: KeyTemplate;
  /** How a list in another partition is settled. */
  readonly settle: Settle;
  readonly when: Condition | undefined;
  readonly uses: readonly Field[];
}

/** An index whose rows are copies of an entity or refer to it. */
export type CopyIndex<Field extends string = string> = IntraPartitionIndex<Field> | InterPartitionIndex<Field>;

export type Index<Field extends string = string> = CopyIndex<Field> | IndexEntity<Field>;

/** What `GET /api/model` returns of a part of a key. */
export const TemplateDescription = z.object({
  template: z.string(),
  fields: z.array(z.string()).describe('The fields that decide the key, in the order of a path'),
});

const Ranges = z
  .array(
    z.object({
      fields: z.array(z.string()).describe('The fields in the path'),
      bounded: z.string().describe('The field of from, to and prefix'),
      order: z.enum(['ascending', 'descending']),
    }),
  )
  .describe('What a range may begin with');

/** What `GET /api/model` returns of an index: how it is read. */
export const IndexDescription = z.object({
  kind: z.enum(['intra-partition', 'inter-partition', 'index-entity']),
  of: z.enum(['one', 'many']).describe('What a read by one value returns: an entity or a list'),
  fields: z.array(z.string()).describe('The fields of a read by one value, in the order of the path'),
  ranges: Ranges,
  unique: z.boolean(),
  sparse: z.boolean().describe('Only some entities are in the index'),
  copies: z.union([z.enum(['everything', 'keys']), z.array(z.string())]),
  partition: TemplateDescription.optional().describe("Absent if the index is in the entity's partition"),
  settle: z.enum(['inline', 'queue']).optional().describe('Who writes its entries in another partition'),
  row: TemplateDescription,
});

/**
 * Makes an index sparse: only entities for which it returns true are indexed. By default, entities are indexed if they have
 * all fields of the keys.
 */
export type Condition = (values: Readonly<Record<string, unknown>>) => boolean;

/** The types of an index by the options that declare it. */
type TypesBy<Options> = Typed<
  Options extends { readonly row: infer Row extends string }
    ? {
        readonly partition: Options extends { readonly partition: infer Partition extends string }
          ? Partition
          : undefined;
        readonly row: Row;
        readonly unique: Options extends { readonly unique: true } ? true : false;
        readonly copies: Options extends { readonly copies: readonly (infer Field extends string)[] }
          ? Field
          : undefined;
      }
    : IndexTypes
>;

type CopiedBy<Options> = Options extends { readonly copies: readonly (infer Field extends string)[] } ? Field : never;

/** The options, if all are in a list such as `row, when`; otherwise a sentence for the compiler to show. */
export type CheckedOptions<Options, Accepted extends string> = [Exclude<keyof Options, NamesIn<Accepted>>] extends [
  never,
]
  ? Options
  : {
      readonly [Name in keyof Options]: Name extends NamesIn<Accepted>
        ? Options[Name]
        : `"${Name & string}" is not an option. Use ${Accepted}`;
    };
type NamesIn<List extends string> = List extends `${infer First}, ${infer Rest}` ? First | NamesIn<Rest> : List;

interface IntraPartitionOptions {
  /** A key template, which orders the index. If it lacks a field of the entity's row key, a value of the index is unique in the partition. */
  readonly row: string;
  /** Only entities for which it returns true are in the index. By default all that have every field of its keys. */
  readonly when?: Condition;
  /**
   * `everything` by default: a full copy. `keys`: a reference, so that a read takes a second lookup. A list of fields: a partial copy, which a list
   * returns with the key.
   */
  readonly copies?: Copies<string>;
}

export const isCondition = z.custom((value) => typeof value === 'function', 'a function is accepted').optional();
const INTRA_PARTITION = optionsOf({
  row: z.string(),
  when: isCondition,
  copies: z
    .custom((value) => value === 'everything' || value === 'keys' || names.safeParse(value).success, {
      error: '"everything", "keys" and a list of fields are accepted',
    })
    .optional(),
} satisfies Record<keyof IntraPartitionOptions, z.ZodType>);

/**
 * Declares a copy in the entity's partition: see `IntraPartitionIndex`. `defineEntity` reports the errors.
 *
 * @example
 * const indexes = { model: intraPartitionIndex({ row: 'model_{model}_{vehicleId}', copies: 'keys' }) };
 */
export function intraPartitionIndex<const Options extends IntraPartitionOptions>(
  options: CheckedOptions<Options, 'row, when, copies'>,
): IntraPartitionIndex<FieldsOf<Options['row']> | CopiedBy<Options>> & TypesBy<Options> {
  return buildPart(INTRA_PARTITION, options, () => {
    const row = compileTemplate(options.row);
    const copies = options.copies ?? 'everything';
    const { when } = options;
    return { kind: 'intra-partition', remote: undefined, row, when, copies, uses: usedFields(row.fields, copies) };
  });
}

interface InterPartitionOptions extends IntraPartitionOptions {
  /** A table of its own. */
  readonly table: string;
  /** A key template. */
  readonly partition: string;
  /** True if no two entities may have one value. */
  readonly unique?: boolean;
  /**
   * `inline` by default: the writer updates the index before it returns. `queue`: a queue function does, so that the writer returns earlier and a read
   * through the index may be stale. Rejected for a unique index.
   */
  readonly settle?: Settle;
  /** The partition key is meant to begin with a time, so that all writes of the moment go to one end of the table. */
  readonly appends?: boolean;
}

const INTER_PARTITION = optionsOf({
  table: z.string(),
  partition: z.string(),
  ...INTRA_PARTITION.shape,
  unique: z.boolean().optional(),
  settle: anything(),
  appends: z.boolean().optional(),
} satisfies Record<keyof InterPartitionOptions, z.ZodType>);

/**
 * Declares a copy in another partition: see `InterPartitionIndex`. `defineEntity` reports the errors.
 *
 * @example
 * const indexes = {
 *   plate: interPartitionIndex({ table: 'vehiclesbyplate', partition: '{plate#}', row: '{plate}', unique: true }),
 * };
 */
export function interPartitionIndex<const Options extends InterPartitionOptions>(
  options: CheckedOptions<Options, 'table, partition, row, when, copies, unique, settle, appends'>,
): InterPartitionIndex<FieldsOf<Options['partition']> | FieldsOf<Options['row']> | CopiedBy<Options>> &
  TypesBy<Options> {
  return buildPart(INTER_PARTITION, options, () => {
    const partition = compileTemplate(options.partition, options);
    const row = compileTemplate(options.row);
    const copies = options.copies ?? 'everything';
    const uses = usedFields<FieldsOf<Options['partition']> | FieldsOf<Options['row']> | CopiedBy<Options>>(
      [...partition.fields, ...row.fields],
      copies,
    );
    return {
      kind: 'inter-partition',
      remote: { table: options.table, partition },
      row,
      unique: options.unique ?? false,
      settle: options.settle ?? 'inline',
      when: options.when,
      copies,
      uses,
    };
  });
}

interface ListOptions {
  /** A key template: one row lists all entities that share its fields. */
  readonly row: string;
  /** A key template of each listed entity, or of the part of its key that the partition key does not give. */
  readonly holds: string;
  /** Only entities for which it returns true are in the list. */
  readonly when?: Condition;
}

type IndexEntityOptions = ListOptions &
  (
    | { readonly table: string; readonly partition: string; readonly settle?: Settle; readonly appends?: boolean }
    | { readonly table?: never; readonly partition?: never; readonly settle?: never; readonly appends?: never }
  );
type PartitionFields<Options> = Options extends { readonly partition: infer Partition extends string }
  ? FieldsOf<Partition>
  : never;

const INDEX_ENTITY = {
  row: z.string(),
  holds: z.string(),
  when: isCondition,
  table: z.string().optional(),
  partition: z.string().optional(),
  settle: anything(),
  appends: z.boolean().optional(),
} satisfies Record<keyof IndexEntityOptions, z.ZodType>;
const LOCAL_LIST = optionsOf(INDEX_ENTITY);
const REMOTE_LIST = optionsOf({ ...INDEX_ENTITY, table: z.string(), partition: z.string() });

/**
 * Declares a list of entities: see `IndexEntity`. `defineEntity` reports the errors.
 *
 * @example
 * const indexes = { model: indexEntity({ row: 'models_{model}', holds: '{vehicleId}' }) };
 */
export function indexEntity<const Options extends IndexEntityOptions>(
  options: CheckedOptions<Options, 'row, holds, when, table, partition, settle, appends'>,
): IndexEntity<FieldsOf<Options['row']> | FieldsOf<Options['holds']> | PartitionFields<Options>> & TypesBy<Options> {
  const { table, partition, settle = 'inline', when, appends }: IndexEntityOptions = options as Options;
  const isRemote = [table, partition, options.settle, appends].some((option) => option !== undefined);
  return buildPart(isRemote ? REMOTE_LIST : LOCAL_LIST, options, () => {
    const row = compileTemplate(options.row);
    const holds = compileTemplate(options.holds);
    const remote =
      table === undefined ? undefined : { table, partition: compileTemplate(partition, { appends: appends ?? false }) };
    const fields = [...row.fields, ...holds.fields, ...(remote?.partition.fields ?? [])];
    return { kind: 'index-entity', remote, row, holds, settle, when, uses: usedFields(fields, 'keys') };
  });
}

/** The literal types of the templates are lost in a list of names, so the type is asserted. */
function usedFields<Field extends string>(fields: readonly string[], copies: Copies<string>): readonly Field[] {
  const copied = typeof copies === 'string' ? [] : copies;
  return [...new Set([...fields, ...copied])] as Field[];
}
