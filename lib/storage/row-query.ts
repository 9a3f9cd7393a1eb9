import { storageCall } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import { isAmbiguous } from './fence-rows.ts';
import type { Properties, Row, RowComparison, RowFilter } from './row-types.ts';
import type { Storage } from './storage.ts';

export type { Address, Properties, Row, RowComparison, RowCondition, RowFilter } from './row-types.ts';

/** The rows of a read; `more` is true if there may be more. */
export interface RowPage {
  readonly rows: Row[];
  readonly more: boolean;
  /** Set if the read paused: the same read with it continues. */
  readonly resume?: string | undefined;
}

const PAGE_SIZE = 1_000;
/** A row of a page as the service sent it; the SDK's names differ in case. */
type SentRow = Readonly<Record<'PartitionKey' | 'RowKey' | 'odata.etag', string>>;

/** How a read that finds few rows ends before its limit. */
export interface Pausing {
  /** True if the caller can continue with `resume`. Without it, the read ends at its limit or at the end of its range. */
  readonly mayPause?: boolean | undefined;
  /** From the same read, which paused. */
  readonly resume?: string | undefined;
}

/** Bounds memory use for long rows. Lengths are in characters of text. */
export interface ReadBound {
  /** Reading ends with the row at which the total reaches this length. */
  readonly length: number;
  readonly rowsPerCall: number;
}

/**
 * Storage reads the rows that a filter leaves out, too, and returns what it found within five seconds, or nothing, with a
 * continuation. So a read that may pause ends after this many calls that returned fewer rows than they were asked for, or after this
 * time.
 */
const MAX_SPARSE_CALLS = 10;
const MAX_SPARSE_MS = 10_000;

export interface Query extends Pausing {
  readonly table: string;
  readonly filter: string;
  readonly select: readonly string[] | undefined;
  readonly limit: number;
  readonly counted: string | undefined;
  readonly bound: ReadBound | undefined;
  /** As in `TableScan`. */
  readonly isTyped?: boolean | undefined;
  /** Rows that are left out do not count. An ambiguous row comes with all of its properties, and all rows that follow. */
  readonly keeps?: ((row: Row) => boolean) | undefined;
}

/** A call after others have left out rows asks for at least so many: few are then read in vain, in few calls. */
const LEAST_KEPT = 100;

/** Reads rows of one account. */
export async function queryRows(
  storage: Storage,
  { table, filter, select, limit, counted, bound, keeps, isTyped = false, mayPause = false, resume }: Query,
): Promise<RowPage> {
  recordIfExplaining(() => ({ read: 'rows', table, filter, ...(select ? { select } : {}) }));
  let sent: readonly SentRow[] = [];
  let body = '';
  const onResponse = ({ parsedBody, bodyAsText }: Response) => {
    sent = parsedBody?.value ?? [];
    body = bodyAsText ?? '';
  };
  const client = storage.table(table);
  const shape = storage.shapes?.get(table);
  // A caller that shares a bound among several reads has a fraction, which the service rejects.
  const perCall = Math.max(1, Math.floor(Math.min(bound?.rowsPerCall ?? PAGE_SIZE, PAGE_SIZE)));
  const rows: Row[] = [];
  let length = 0;
  let count = 0;
  let sparseCalls = 0;
  const since = performance.now();
  // The service may return a short or empty page with a continuation token; only a missing token means the end.
  for (let [continuationToken, projected] = [resume, select]; ; ) {
    const queryOptions = {
      ...(filter ? { filter } : {}),
      ...(projected ? { select: ['PartitionKey', 'RowKey', ...projected] } : {}),
    };
    const wanted = keeps && continuationToken !== resume ? Math.max(limit - count, LEAST_KEPT) : limit - count;
    const maxPageSize = counted === undefined ? Math.min(wanted, perCall) : perCall;
    const settings = { maxPageSize, ...(continuationToken === undefined ? {} : { continuationToken }) };
    const pages = client.listEntities({ queryOptions, onResponse }).byPage(settings);
    const { value: page } = await storageCall(pages.next(), client.tableName);
    const typed = isTyped || shape ? parseRows(body) : undefined;
    if (projected && typed?.some(({ properties }) => shape?.isAmbiguous(properties))) {
      projected = undefined;
      continue;
    }
    const read = typed
      ? typed.map((row) => ({ table, ...row, ...(shape && { properties: shape.toProperties(row) }) }))
      : [...(page ?? [])].map((entity, index) => toRow(table, entity, sent[index]));
    if (keeps && projected && read.some(({ row }) => isAmbiguous(row))) {
      projected = undefined;
      continue;
    }
    continuationToken = page?.continuationToken;
    let kept = 0;
    for (const [index, row] of read.entries()) {
      if (keeps && !keeps(row)) continue;
      kept += 1;
      rows.push(row);
      length += textLength(row.properties);
      if (counted === undefined || row.properties.EntityType === counted) count += 1;
      if (count < limit && (!bound || length < bound.length)) continue;
      return { rows, more: index + 1 < read.length || continuationToken !== undefined };
    }
    if (continuationToken === undefined) return { rows, more: false };
    if (kept < maxPageSize) sparseCalls += 1;
    const isOver = sparseCalls >= MAX_SPARSE_CALLS || (sparseCalls > 0 && performance.now() - since >= MAX_SPARSE_MS);
    if (mayPause && isOver) return { rows, more: true, resume: continuationToken };
  }
}

/** Total length of the texts (characters) and binaries (bytes) in the properties. */
export function textLength(properties: Properties): number {
  return Object.values(properties).reduce<number>((sum, value) => sum + lengthOf(value), 0);
}

function lengthOf(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  return isObject(value) ? lengthOf(value.value) : 0;
}

interface Response {
  readonly parsedBody?: { readonly value?: readonly SentRow[] };
  readonly bodyAsText?: string | null;
}

/**
 * The rows in the body of a query, with the types of their properties and in the order of their names. The SDK would read 5.0, a Double, as 5, and
 * write it as an Int32, which compares differently.
 */
export function parseRows(body: string): Omit<Row, 'table'>[] {
  const { value: rows = [] } = parseBody(body) as { value?: Record<string, unknown>[] };
  return rows.map((sent) => ({
    partition: String(sent.PartitionKey),
    row: String(sent.RowKey),
    etag: String(sent['odata.etag']),
    properties: toTypedProperties(sent),
  }));
}

/** The properties in the body of a point query, with their types. */
export function parseProperties(body: string): Properties {
  return toTypedProperties(parseBody(body));
}

function parseBody(body: string): Record<string, unknown> {
  const reviver: Reviver = (_, value, { source }) =>
    typeof value === 'number' && source !== undefined && !/^-?\d+$/.test(source)
      ? { type: 'Double', value: source }
      : value;
  return JSON.parse(body || '{}', reviver as (key: string, value: unknown) => unknown);
}

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

const ANNOTATION = '@odata.type';
/** Properties of storage. A client may have stored names like those of the SDK, which differ in case, and which it cannot write. */
const NOT_STORED = new Set([
  'PartitionKey',
  'RowKey',
  'Timestamp',
  'odata.etag',
  'odata.type',
  'odata.id',
  'odata.editLink',
  'odata.metadata',
]);

function toTypedProperties(sent: Record<string, unknown>): Properties {
  const properties: Record<string, unknown> = {};
  for (const name of Object.keys(sent).sort()) {
    if (NOT_STORED.has(name) || name.endsWith(ANNOTATION)) continue;
    const type = String(sent[name + ANNOTATION] ?? '').replace('Edm.', '');
    const value = sent[name];
    properties[name] = type && !isObject(value) ? { type, value: type === 'Double' ? String(value) : value } : value;
  }
  return properties;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Takes keys and ETag as the service sent them: a client may have stored a property named `rowKey` or `etag`. */
function toRow(table: string, entity: Properties, sent: SentRow | undefined): Row {
  const { PartitionKey: partition = '', RowKey: row = '', 'odata.etag': etag = '' } = sent ?? {};
  return { table, partition, row, etag, properties: toRowProperties(entity) };
}

/** Leaves out the SDK's names for keys, ETag and time stamp. A stored property with such a name would hide them. */
export function toRowProperties(entity: Properties): Properties {
  const { partitionKey: _, rowKey: __, etag: ___, timestamp: ____, 'odata.metadata': _____, ...properties } = entity;
  return properties;
}

/** A URL with more characters may be rejected on its way. */
const MAX_PROJECTION_LENGTH = 4_000;

/** The projection to send; undefined for all properties, of which a caller has to pick its own. */
export function projection(select: readonly string[]): string[] | undefined {
  return select.join(',').length <= MAX_PROJECTION_LENGTH ? [...select] : undefined;
}
/** Which rows a query returns, as the filter that storage evaluates. */

/** Storage rejects more comparisons. https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities */
export const MAX_COMPARISONS = 15;
/** A number with an exponent, which the emulator does not read. */
const WITH_EXPONENT = /^-?[\d.]+e/;

/** The conditions of a filter, with at most `room` comparisons. */
export function rowConditions({ type, ...filter }: RowFilter, room: number): string[] {
  const types = type === undefined ? [] : [type].flat().map((one) => (typeof one === 'string' ? { type: one } : one));
  let left = room - types.length;
  const compare = ({ where = [], orVersionBefore }: RowFilter) => {
    const isVersioned = orVersionBefore !== undefined && where.length > 0;
    if (isVersioned) left -= 1;
    const sent = where.flatMap((condition) => {
      const alternatives = ('anyOf' in condition ? condition.anyOf : [[condition]]).map((all) => all.map(toText));
      const all = alternatives.flat();
      const needed = all.reduce((sum, { count }) => sum + count, 0);
      if (needed > left || all.some(({ isReadable }) => !isReadable)) return [];
      left -= needed;
      const texts = alternatives.map((each) => each.map(({ text }) => text).join(' and '));
      return [texts.length > 1 ? `(${texts.map((text) => `(${text})`).join(' or ')})` : String(texts[0])];
    });
    if (!isVersioned || sent.length === 0) return sent;
    // The version comes first: an older row may have a value of another type.
    return [`(EntityVersion lt ${literal(orVersionBefore)} or (${sent.join(' and ')}))`];
  };
  const ofTypes = types.map((one) => {
    const conditions = [`EntityType eq ${literal(one.type)}`, ...compare(one)];
    return types.length > 1 && conditions.length > 1 ? `(${conditions.join(' and ')})` : conditions.join(' and ');
  });
  const ofType = ofTypes.length > 1 ? [`(${ofTypes.join(' or ')})`] : ofTypes;
  return [...ofType, ...compare(filter)];
}

function toText({ name, operator, values }: RowComparison) {
  const literals = values.map(literal);
  const wanted = literals.map((text) => `${name} ${operator === 'in' ? 'eq' : operator} ${text}`);
  return {
    text: wanted.length > 1 ? `(${wanted.join(' or ')})` : String(wanted[0]),
    count: literals.length,
    isReadable: !literals.some((text) => WITH_EXPONENT.test(text)),
  };
}

/** Formats a value for a filter. The SDK's own template formats a Double and an Int64 as an Int32. The text of another type is valid: it has no quote. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  if (typeof value !== 'object' || value === null || !('type' in value) || !('value' in value)) return String(value);
  const text = String(value.value);
  if (value.type === 'Int64') return `${text}L`;
  if (value.type === 'DateTime' || value.type === 'Guid') return `${value.type.toLowerCase()}'${text}'`;
  if (value.type === 'Binary') return `X'${Buffer.from(text, 'base64').toString('hex')}'`;
  return /[.e]/i.test(text) ? text : `${text}.0`;
}
