import { z } from 'zod';
import { DeclarationError } from '../base/errors.ts';
import { DAY_MS } from '../base/time.ts';
import { frozenCopy } from '../base/values.ts';
import { MAX_TRANSACTION_ACTIONS } from '../storage/rows.ts';
import {
  acceptedOptions,
  type ColumnType,
  type Declaration,
  type DeclaredEntity,
  type Options,
  type OptionsWith,
  type Slots,
  type Span,
} from './declaration/declaration.ts';
import type { Checked, EntityBy } from './declaration/declared-types.ts';
import type { Typed } from './declaration/indexes.ts';
import { compileEntity, rejectErrors } from './define-entity.ts';
import { CALENDAR_UNITS, type CalendarUnit } from './keys/calendar.ts';
import { anything, optionErrors, optionsOf } from './schema/options.ts';
import { inheritedNameErrors } from './validate/validate-entity.ts';

interface SlotsOptions {
  /** The unit of a slot, such as `hour`. */
  readonly name: string;
  /** The number of the first slot. */
  readonly first: number;
  /** The number of the last slot. */
  readonly last: number;
  /** How many slots one row holds, up to 240, if a key has several rows. */
  readonly perRow?: Slots['perRow'];
  /** `'blob'`: there is one row, and the counts that it cannot hold are in a blob. */
  readonly overflow?: Slots['overflow'];
}

interface SeriesOptions<Field extends string = string>
  extends Pick<Options<Field>, Exclude<keyof OptionsWith<'inSeries'>, 'schema'>> {
  /** The counts of a key, one for each number from `first` to `last`. */
  readonly slots: SlotsOptions;
  /** High volume delete pattern: each day, month or year has a table, which is dropped as a whole after retention. */
  readonly period?: Omit<NonNullable<Options<Field>['period']>, 'archiveTo'>;
  /**
   * How the slots of one key follow those of another: a key field is a day, a month or a year, which the slots divide. Several keys
   * are then read as one list, such as the last 24 hours.
   */
  readonly span?: Span<Field>;
}
type SeriesDeclaration = SeriesOptions & Pick<Declaration, 'schema'>;

const ACCEPTED = acceptedOptions(({ inSeries }) => inSeries, {
  slots: optionsOf({
    name: z.string(),
    first: anything(),
    last: anything(),
    perRow: anything(),
    overflow: anything(),
  } satisfies Record<keyof SlotsOptions, z.ZodType>),
  period: optionsOf({ per: anything(), field: z.string(), keep: anything() }).optional(),
  span: optionsOf({ field: z.string(), per: anything() } satisfies Record<keyof Span, z.ZodType>).optional(),
} satisfies Record<Exclude<keyof SeriesDeclaration, keyof OptionsWith<'inSeries'>>, z.ZodType>);

/** Table storage allows 252 properties beside the keys. The rest is for key fields and system properties. */
const MAX_SLOTS_IN_ROW = 240;
/** A blob of 400 kB, which is written as a whole. */
const MAX_SLOT = 99_999;

/**
 * Declares a series. Its schema has the fields of the key and no others. Throws an error that lists everything that is
 * wrong.
 *
 * @example
 * const trips = defineSeries('trips', {
 *   schema: z.object({ vehicleId: z.string(), day: z.iso.date() }),
 *   table: 'trips',
 *   key: { partition: '{vehicleId}', row: '{day}' },
 *   slots: { name: 'hour', first: 0, last: 23 },
 *   access: { read: ['reader'], write: ['editor'] },
 * });
 */
export function defineSeries<
  const Name extends string,
  Shape extends z.ZodRawShape,
  const Given extends SeriesOptions<keyof Shape & string>,
>(
  name: Name,
  declaration: { readonly schema: z.ZodObject<Shape> } & Checked<Given, keyof Shape & string>,
): EntityBy<Name, Shape, Given> & { readonly series: Slots & Typed<{ readonly spanField: SpanFieldOf<Given> }> } {
  const series: unknown = compileSeries(name, declaration as unknown as SeriesDeclaration);
  return series as EntityBy<Name, Shape, Given> & { readonly series: Slots };
}

type SpanFieldOf<Given> = Given extends { readonly span: { readonly field: infer Field extends string } }
  ? Field
  : never;

function compileSeries(name: string, series: SeriesDeclaration): DeclaredEntity {
  rejectErrors(name, optionErrors(ACCEPTED, series));
  const { slots, span, ...declaration } = series;
  const { first, last, perRow = last - first + 1, overflow } = slots;
  const refuse = (why: string) => new DeclarationError(`Entity "${name}": ${why}`);
  for (const error of inheritedNameErrors('slot', [slots.name])) throw refuse(error);
  if (!/^[a-z][A-Za-z0-9]{0,49}$/.test(slots.name))
    throw refuse(
      `the slot name "${slots.name}" is not accepted. Use 1 to 50 letters and digits, a lower-case letter first.`,
    );
  if (![first, last].every(Number.isInteger) || first < 0 || last < first || last > MAX_SLOT)
    throw refuse(`the slots run from ${first} to ${last}. Use whole numbers from 0 to ${MAX_SLOT}, in order.`);
  for (const error of rowErrors(slots)) throw refuse(error);
  const entity = compileEntity(name, declaration);
  const keyFields: readonly string[] = entity.keyFields;
  const other = Object.keys(entity.columns).find((field) => !keyFields.includes(field));
  if (other)
    throw refuse(`the field ${other} is not in the key. Keep only the fields of the key in the schema of a series.`);
  if (span) for (const error of spanErrors(entity, slots, span)) throw refuse(error);
  return frozenCopy({ ...entity, series: { ...slots, perRow, overflow, span } });
}

function* rowErrors({ first, last, perRow = last - first + 1, ...slots }: SlotsOptions): Generator<string> {
  if (slots.overflow !== undefined && slots.overflow !== 'blob')
    yield `slots.overflow is "${slots.overflow}". Use "blob".`;
  if (slots.overflow) {
    if (perRow !== last - first + 1) yield 'slots.perRow and slots.overflow exclude each other. Remove one of them.';
    return;
  }
  if (!Number.isInteger(perRow) || perRow < 1 || perRow > MAX_SLOTS_IN_ROW)
    yield `a row would hold ${perRow} slots. Set perRow to a whole number from 1 to ${MAX_SLOTS_IN_ROW}, or slots.overflow to "blob".`;
  const rows = Math.ceil((last - first + 1) / perRow);
  if (rows > MAX_TRANSACTION_ACTIONS)
    yield `the slots would take ${rows} rows, and one transaction changes ${MAX_TRANSACTION_ACTIONS}. Increase perRow, or set slots.overflow to "blob".`;
}

/** Has a 29 February and a 31st. */
const SAMPLES = { day: '2024-02-29', month: '2024-12', year: '2024' };

function* spanErrors(entity: DeclaredEntity, { first, last }: SlotsOptions, { field, per }: Span): Generator<string> {
  if (!CALENDAR_UNITS.includes(per)) {
    yield `span.per is "${per}". Use one of ${CALENDAR_UNITS.map((unit) => `"${unit}"`).join(', ')}.`;
    return;
  }
  if (!entity.keyFields.includes(field))
    yield `span.field "${field}" is not in the key. Name the key field with the ${per} of the slots.`;
  const sample = periodValue(entity.columns[field], SAMPLES[per]);
  const type: z.ZodType | undefined = entity.schema.shape[field];
  const isAccepted = (value: unknown) => type?.safeParse(value).success === true;
  if (!isAccepted(sample) || isAccepted(`${sample}x`))
    yield `span.field "${field}" is not a ${per}. Let its schema accept values such as ${JSON.stringify(sample)} and no others.`;
  const count = last - first + 1;
  if (slotLength(per, count) === undefined)
    yield `${count} slots do not divide a ${per}, which span.per names. Use ${ACCEPTED_SLOTS[per]}.`;
}

/**
 * The time of the slots of a series with a span (UTC). The slots of a key divide the longest period of its unit: 31 days, 366 days.
 * In a shorter month or year the last slots have no time, so a span leaves them out.
 */

const MONTHS_OF_YEAR = 12;
const LONGEST_DAYS = { day: 1, month: 31, year: 366 };

/** The accepted numbers of slots, for an error message. */
const ACCEPTED_SLOTS: Readonly<Record<CalendarUnit, string>> = {
  day: '24 (hours), 1440 (minutes) and other divisors of 86400',
  month: '31 (days), 744 (hours) and other multiples of 31 that divide a day into whole seconds',
  year: '12 (months), 366 (days), 8784 (hours) and other multiples of 366 that divide a day into whole seconds',
};

/** The milliseconds of a slot, or `month`. Undefined if so many slots do not divide the unit. */
export function slotLength(per: CalendarUnit, count: number): number | 'month' | undefined {
  if (per === 'year' && count === MONTHS_OF_YEAR) return 'month';
  const length = (LONGEST_DAYS[per] * DAY_MS) / count;
  const isWholeSeconds = length % 1_000 === 0 && DAY_MS % length === 0;
  return isWholeSeconds ? length : undefined;
}

/** A period as the value of a field: a year may be a number. */
export function periodValue(type: ColumnType | undefined, period: string): string | number {
  return type === 'String' ? period : Number(period);
}
