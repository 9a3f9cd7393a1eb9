import { RowkeyError } from '../../lib/base/errors.ts';
import { omit, type Values, WrongValue } from '../../lib/base/values.ts';
import { storedFields } from '../../lib/define/codec/existing-rows.ts';
import { validate } from '../../lib/define/codec/validation.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { entityIn } from '../../lib/engine/read/entity-rows.ts';
import { timeOf } from '../../lib/storage/row-journal.ts';
import { type Row, scanTable } from '../../lib/storage/rows.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import { MAX_KEYS, readKey } from '../cli/one-per-key.ts';

/** The rows of tables that another program fills, as the values of the entities into which they are copied. */

/** Returns what is stored of a value of the other model. Undefined leaves the row out. */
export type Mapping = (values: Values) => Values | undefined;

/** An entity of two models. */
export interface Kind {
  readonly from: Entity;
  readonly to: Entity;
  readonly map?: Mapping | undefined;
}

/** A row that is not copied. */
interface Rejected {
  /** The key, as a text. */
  readonly key: string;
  readonly reason: string;
}

/** What was read of one kind. The lists are bounded, the numbers are not. */
export interface KindReport {
  readonly name: string;
  rows: number;
  /** Rows that the mapping leaves out. */
  leftOut: number;
  rejected: number;
  readonly rejections: Rejected[];
  /** The least time of a rejected row, by the clock of the source. */
  earliest?: string;
  /** How many rows have a property that no field names. It is not copied. */
  readonly undeclared: Map<string, number>;
}

export interface SourceReport {
  readonly table: string;
  rows: number;
  /** The greatest time of a row, by the clock of the source. */
  latest: string;
  /** Rows of no kind that is copied. */
  foreign: number;
  /** The forms of their keys, the first ones. */
  readonly forms: Map<string, number>;
  readonly kinds: ReadonlyMap<string, KindReport>;
}

const PAGE = 1_000;
const MAX_REJECTIONS = 1_000;
const MAX_FORMS = 20;

/** The entities of both models. Throws if there are none, or none of a table. */
export function findKinds(
  source: readonly Entity[],
  target: readonly Entity[],
  {
    maps = {},
    tables,
  }: { readonly maps?: Readonly<Record<string, Mapping>>; readonly tables?: readonly string[] } = {},
): Kind[] {
  const names = new Set(source.map(({ name }) => name));
  const unknown = Object.keys(maps).find((name) => !names.has(name));
  if (unknown !== undefined)
    throw new Error(`"map" has ${unknown}, which is no entity; accepted are ${[...names].join(', ')}.`);
  const wanted = tables?.map((table) => table.toLowerCase());
  const missing = wanted?.find((table) => !source.some((from) => from.table.toLowerCase() === table));
  if (missing !== undefined) throw new Error(`No entity of the source has the table ${missing}.`);
  const kinds = source.flatMap((from): Kind[] => {
    const to = target.find(({ name }) => name === from.name);
    const isWanted = from.existing && to && (wanted?.includes(from.table.toLowerCase()) ?? true);
    return isWanted ? [{ from, to, map: maps[from.name] }] : [];
  });
  if (kinds.length > 0) return kinds;
  throw new Error('No entity of the app has the name of an entity of the source with the option existing.');
}

export function newReport(table: string, kinds: readonly Kind[]): SourceReport {
  const reports = kinds.map(({ to: { name } }): KindReport => {
    return { name, rows: 0, leftOut: 0, rejected: 0, rejections: [], undeclared: new Map() };
  });
  const byName = new Map(reports.map((report) => [report.name, report]));
  return { table, rows: 0, latest: '', foreign: 0, forms: new Map(), kinds: byName };
}

export interface ReadOptions {
  readonly report: SourceReport;
  /** Only rows that were written at this instant or later. */
  readonly since?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onRows?: ((rows: number) => void) | undefined;
}

/** Reads the values of all kinds of a table in one scan, by pages. Adds what it sees to the report. */
export async function* readSource(
  storage: Storage,
  kinds: readonly Kind[],
  { report, since, signal, onRows }: ReadOptions,
): AsyncGenerator<ReadonlyMap<Kind, readonly Values[]>> {
  const { table } = report;
  const where =
    since === undefined
      ? []
      : [{ name: 'Timestamp', operator: 'ge', values: [{ type: 'DateTime', value: since }] } as const];
  const byName = new Map(kinds.map((kind) => [kind.from.name, kind]));
  const seen = new Map(kinds.map((kind) => [kind, new Map<string, Row>()]));
  let at: Pick<Parameters<typeof scanTable>[1], 'after' | 'resume'> | undefined = {};
  /** Rejects a row with the key of another one, which would replace it. */
  const isRepeated = (kind: Kind, row: Row, values: Values) => {
    const keys = seen.get(kind);
    const key = readKey(kind.to, { values });
    const first = key === undefined ? undefined : keys?.get(key);
    const of = report.kinds.get(kind.to.name);
    if (first && of) {
      const error = new Error(`Its key is that of ${addressOf(first)}.`);
      // Both are read again.
      for (const time of [timeOf(first.etag), timeOf(row.etag)]) noteTime(of, time);
      reject(of, addressOf(row), error);
      return true;
    }
    if (key !== undefined) keys?.set(key, { ...row, properties: {} });
    const [oldest] = keys && keys.size > MAX_KEYS ? keys.keys() : [];
    if (oldest !== undefined) keys?.delete(oldest);
    return false;
  };
  while (at) {
    signal?.throwIfAborted();
    const page = await scanTable(storage, { table, where, limit: PAGE, mayPause: true, ...at });
    const found = new Map<Kind, Values[]>(kinds.map((kind) => [kind, []]));
    for (const row of page.rows) {
      const { EntityType: type } = row.properties;
      const time = timeOf(row.etag) ?? '';
      report.rows += 1;
      if (time > report.latest) report.latest = time;
      const kind = byName.get(String(type));
      if (!kind) noteForeign(report, row);
      else {
        const values = readValues(kind, row, report);
        if (values && !isRepeated(kind, row, values)) found.get(kind)?.push(values);
      }
    }
    onRows?.(page.rows.length);
    yield found;
    const last = page.rows.at(-1);
    at = page.more && last ? { after: last } : undefined;
    if (page.resume !== undefined) at = { resume: page.resume };
  }
}

function noteForeign(report: SourceReport, { partition, row }: Row): void {
  const { forms } = report;
  const form = `${formOf(partition)} / ${formOf(row)}`;
  report.foreign += 1;
  if (forms.has(form) || forms.size < MAX_FORMS) forms.set(form, (forms.get(form) ?? 0) + 1);
}

const formOf = (key: string) => key.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '{id}').replace(/\d+/g, '#');

function readValues(kind: Kind, row: Row, report: SourceReport): Values | undefined {
  const of = report.kinds.get(kind.to.name);
  if (!of) return undefined;
  of.rows += 1;
  const { Carried: carried } = row.properties;
  const properties = typeof carried === 'string' ? Object.keys(JSON.parse(carried)) : [];
  for (const name of properties.filter((one) => !storedFields(kind.from).some((field) => field.name === one)))
    of.undeclared.set(name, (of.undeclared.get(name) ?? 0) + 1);
  try {
    const values = entityIn(kind.from, row)?.values ?? {};
    const wrong = Object.keys(values).filter((field) => values[field] instanceof WrongValue);
    if (wrong.length > 0) throw new Error(`The stored value of ${wrong.join(', ')} is of another type than declared.`);
    const mapped = kind.map ? kind.map(values) : values;
    if (mapped === undefined) of.leftOut += 1;
    else times.set(mapped, timeOf(row.etag) ?? '');
    return mapped;
  } catch (error) {
    noteTime(of, timeOf(row.etag));
    reject(of, addressOf(row), error);
    return undefined;
  }
}

const addressOf = ({ partition, row }: Row) => `${partition} / ${row}`;

/** When the rows of these values were written. */
const times = new WeakMap<Values, string>();

function noteTime(of: KindReport, time: string | undefined): void {
  if (time && time < (of.earliest ?? '~')) of.earliest = time;
}

/** Adds a row that is not copied. `values` are those that were read of it. */
export function reject(of: KindReport, key: string, error: unknown, values?: Values): void {
  if (values) noteTime(of, times.get(values));
  of.rejected += 1;
  if (of.rejections.length < MAX_REJECTIONS) of.rejections.push({ key, reason: reasonOf(error) });
}

function reasonOf(error: unknown): string {
  if (error instanceof RowkeyError) return error.detail ?? error.message;
  return error instanceof Error ? error.message : String(error);
}

/** The values that the entity has once they are copied, without those that it computes itself. Throws `invalid-input`. */
export function expectValues(entity: Entity, mapped: Values): Values {
  const computed = entity.decidedFields.filter((field) => !entity.keyFields.includes(field));
  return omit(validate(entity, omit(mapped, computed)), computed);
}

/** True if a copy brings the entity with these values of the source into the app. */
export function isCopied({ to, map }: Kind, values: Values): boolean {
  try {
    // An unreadable value is read as null.
    const mapped = Object.values(values).includes(null) ? undefined : map ? map(values) : values;
    return mapped !== undefined && expectValues(to, mapped) !== undefined;
  } catch {
    return false;
  }
}
