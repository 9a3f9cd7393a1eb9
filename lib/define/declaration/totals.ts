import { z } from 'zod';
import { TOTAL_HEADS } from '../../base/engine-names.ts';
import { CALENDAR_UNITS, type CalendarUnit } from '../keys/calendar.ts';
import { compileTemplate, type FieldsOf, type KeyTemplate } from '../keys/key-template.ts';
import { buildPart, names, optionsOf } from '../schema/options.ts';
import {
  type CheckedOptions,
  type Condition,
  IndexDescription,
  type InterPartitionIndex,
  isCondition,
  type Typed,
} from './indexes.ts';

/**
 * Maintained totals: the number of entities of a group, with sums and extremes of their fields. The fields of `partition` and
 * `row` form the group.
 */
export interface Total<Field extends string = string> {
  readonly table: string;
  /** May have buckets (`{orderId%8}`), which a read adds up. */
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** The row key of the total of a group. */
  readonly totalRow: KeyTemplate;
  /** The first part of the row keys of a group's contributions. */
  readonly contributions: KeyTemplate;
  readonly sum: readonly string[];
  readonly min: readonly string[];
  readonly max: readonly string[];
  /** The fields of the group: those of the key without the ones that only choose a bucket. */
  readonly groupFields: readonly string[];
  /** The fields of the group of which the key has only a period, by name. */
  readonly periods: Readonly<Record<string, CalendarUnit>>;
  readonly when: Condition | undefined;
  /** The fields it depends on. The compiler checks them against the schema. */
  readonly uses: readonly Field[];
}

/** What `GET /api/model` returns of totals. */
export const TotalDescription = z.object({
  fields: z.array(z.string()).describe('The fields of a group, in the order of the path'),
  periods: z.record(z.string(), z.enum(CALENDAR_UNITS)).describe('The fields of which a group has only a period'),
  ranges: IndexDescription.shape.ranges,
  sum: z.array(z.string()),
  min: z.array(z.string()),
  max: z.array(z.string()),
  sparse: z.boolean().describe('Only some entities count'),
});

/** The types of a total by the options that declare it. */
export interface TotalTypes {
  readonly partition: string;
  readonly row: string;
  readonly sum: string;
  readonly min: string;
  readonly max: string;
}

interface TotalOptions {
  /** A table of its own. */
  readonly table: string;
  /** A key template. Its fields are part of the group. */
  readonly partition: string;
  /** A key template. It orders the groups of a partition, so that a range of them is one query. */
  readonly row: string;
  /** Numbers, added exactly as decimals. */
  readonly sum?: readonly string[];
  /** Numbers, dates and instants: the least of each is kept. */
  readonly min?: readonly string[];
  /** Numbers, dates and instants: the greatest of each is kept. */
  readonly max?: readonly string[];
  /** Only entities for which it returns true count. */
  readonly when?: Condition;
  /** True if the partition key is meant to begin with a time, so that all writes of the moment go to one end of the table. */
  readonly appends?: boolean;
}

type NamesIn<Options, Part extends string> = Options extends {
  readonly [Each in Part]: readonly (infer Field extends string)[];
}
  ? Field
  : never;

const OPTIONS = optionsOf({
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  sum: names.optional(),
  min: names.optional(),
  max: names.optional(),
  when: isCondition,
  appends: z.boolean().optional(),
} satisfies Record<keyof TotalOptions, z.ZodType>);

/**
 * Declares totals: see `Total`. `defineEntity` reports the errors.
 *
 * @example
 * const totals = { perModel: total({ table: 'vehiclespermodel', partition: '{depot}', row: '{model}', sum: ['seats'] }) };
 */
export function total<const Options extends TotalOptions>(
  options: CheckedOptions<Options, 'table, partition, row, sum, min, max, when, appends'>,
): Total<
  | FieldsOf<Options['partition']>
  | FieldsOf<Options['row']>
  | NamesIn<Options, 'sum'>
  | NamesIn<Options, 'min'>
  | NamesIn<Options, 'max'>
> &
  Typed<{
    readonly partition: Options['partition'];
    readonly row: Options['row'];
    readonly sum: NamesIn<Options, 'sum'>;
    readonly min: NamesIn<Options, 'min'>;
    readonly max: NamesIn<Options, 'max'>;
  }> {
  return buildPart(OPTIONS, options, () => {
    const { table, sum = [], min = [], max = [], when } = options;
    const partition = compileTemplate(options.partition, options);
    const row = compileTemplate(options.row);
    const uses = [...new Set([...partition.fields, ...row.fields, ...sum, ...min, ...max])];
    const totalRow = compileTemplate(`${TOTAL_HEADS.total}${row.template}`);
    const contributions = compileTemplate(`${TOTAL_HEADS.contribution}${row.template}_`);
    const parts = [...partition.parts, ...row.parts];
    const ofGroup = parts.filter(({ buckets }) => buckets === undefined).map(({ field }) => field);
    return {
      table,
      partition,
      row,
      totalRow,
      contributions,
      sum,
      min,
      max,
      groupFields: [...new Set(ofGroup)],
      periods: Object.fromEntries(parts.flatMap(({ field, unit }) => (unit ? [[field, unit]] : []))),
      when,
      // The literal types of the templates are lost in a list of names.
      uses: uses as never[],
    };
  });
}

/** The totals as an index whose rows are the totals, for what reads and validates both. */
export function toIndex({ table, partition, totalRow: row, when, uses }: Total): InterPartitionIndex {
  return {
    kind: 'inter-partition',
    remote: { table, partition },
    row,
    unique: false,
    settle: 'inline',
    when,
    copies: 'keys',
    uses,
  };
}
