import pMap from 'p-map';
import { busy, entityError, hasCode, RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { backOff } from '../../base/time.ts';
import { hasValue, omit, pick, type Values, WrongValue } from '../../base/values.ts';
import { commandLine } from '../../command-line.ts';
import { storedVersion, toSnapshot, toValues } from '../../define/codec/entity-codec.ts';
import { onlyRead } from '../../define/codec/existing-rows.ts';
import {
  formatListedRows,
  furtherRowRange,
  furtherRowType,
  groupsToRead,
  joinRows,
  listedRows,
  parseFurtherRowKey,
  typesToRead,
} from '../../define/codec/further-rows.ts';
import { validate, validateTexts } from '../../define/codec/validation.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { ColumnType } from '../../define/declaration/declaration.ts';
import { type Entity, formerOf, type NumberedRows } from '../../define/declaration/entity.ts';
import { parseKey } from '../../define/keys/key-template.ts';
import { addressIfAny, isCopy } from '../../define/places/index-entries.ts';
import { isMarked } from '../../storage/row-marks.ts';
import {
  type Address,
  MAX_TRANSACTION_ACTIONS,
  type Row,
  type RowPage,
  type RowRange,
  readRange,
  readRow,
  scanTable,
  type TableScan,
} from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { unlessTableMissing } from '../period-tables.ts';
import { noteShared } from '../shared-tables.ts';

/** Reads the rows of an entity as one: its own row, and the further rows in which the wanted fields are. */

/** A read that meets a write may see rows of two states. */
const READ_ATTEMPTS = 20;
const BACK_OFF_MS = 10;
const LONGEST_BACK_OFF_MS = 250;
const READS_CONCURRENCY = 16;
const REKEY_RETRY_S = 5;

/** The message, which is logged, has no key, because keys may be personal data. */
export class FurtherRowLost extends RowkeyError {
  readonly entity: Entity;
  /** Names the entity by its keys: a `detail` only for callers who may read the whole entity. */
  readonly detailWithKeys: string;

  constructor(entity: Entity, { partition, row }: Omit<Address, 'table'>, lost: readonly string[]) {
    const what = `is lost: ${lost.join(', ')}.`;
    const howToFind = `${commandLine('verify', '<entity>')} finds its key.`;
    super('needs-repair', `A further row of an entity of ${entity.name} ${what} ${howToFind}`);
    this.entity = entity;
    const keys = `with the partition key ${JSON.stringify(partition)} and the row key ${JSON.stringify(row)}`;
    this.detailWithKeys = `A further row of the entity of ${entity.name} ${keys} ${what} The operator must repair it.`;
  }
}

export interface EntityRowOptions {
  /** The fields that the caller needs; by default those of every read. */
  readonly fields?: readonly string[] | undefined;
  /** Throws `needs-repair` if a further row is lost. Otherwise its fields have no value, so that a write can replace them. */
  readonly isWhole?: boolean | undefined;
  /** Of a range without `isWhole`: the fields that a lost row may have had are wrong values, which a list returns as null. */
  readonly marksLost?: boolean | undefined;
}

type PointQuery = Parameters<typeof readRow>[1];

/** Reads a row of an entity. Undefined if the row, or the table of its period, does not exist. */
export async function readEntityRow(engine: Engine, entity: Entity, address: PointQuery): Promise<Row | undefined> {
  const reading = readRow(engine.storage, address);
  const row = await (entity.period ? unlessTableMissing(reading, undefined) : reading);
  // Of a row that was read in part, the type is known.
  const isWhole = !address.select || row?.properties.EntityType === undefined;
  if (row && isWhole && isForeign(entity, row)) noteShared(engine, entity.table);
  return row;
}

/** True if another program wrote the row, of which all properties are known. */
export function isForeign({ name, isWrittenByClients }: Entity, { properties }: Row): boolean {
  return !isWrittenByClients && properties.EntityType !== name && !isMarked(properties);
}

/** The error while entities are at their former key, or some of them are. */
export function beingRekeyed({ name }: Entity): RowkeyError {
  return new RowkeyError(
    'busy',
    `The entities of ${name} are not all at their key yet. This request is served when they have been moved.`,
    { retryAfter: REKEY_RETRY_S },
  );
}

/** The declaration with which an operation begins: that of the former key while all entities are there. */
export async function declarationOf(engine: Engine, entity: Entity): Promise<Entity> {
  if (!entity.formerKey || (await engine.rekey?.phaseOf(engine, entity.name)) !== 'former') return entity;
  return formerOf(entity) ?? entity;
}

/**
 * Throws `busy` if entities may be elsewhere than at the key of this declaration. Called after a read of several: the move begins later than
 * any process uses what it has read of the phase, so the read has found all.
 */
export async function requireRekeyed(engine: Engine, entity: Entity): Promise<void> {
  if (!engine.rekey?.has(entity.name)) return;
  const phase = await engine.rekey.phaseOf(engine, entity.name);
  if (phase !== (entity.formerKey ? undefined : 'former')) throw beingRekeyed(entity);
}

/**
 * Throws `busy` unless entities may be written at the key of this declaration, and `method-not-allowed` if another program alone writes them. Called when the time
 * of a write has begun.
 */
export async function requireWritable(engine: Engine, entity: Entity): Promise<void> {
  if (entity.existing?.readOnly) throw onlyRead(entity);
  if (!engine.rekey?.has(entity.name)) return;
  const phase = await engine.rekey.phaseOf(engine, entity.name);
  if (entity.formerKey ? phase === 'former' || phase === 'waiting' : phase !== 'former') throw beingRekeyed(entity);
}

/**
 * The row of an entity whose address has this row, from the former key if the entity is still there. A row that arrives counts only if
 * its move can be finished.
 */
async function findRekeyed(
  engine: Engine,
  { name }: Entity,
  address: PointQuery,
  { row, ...options }: EntityRowOptions & { readonly row: Row | undefined },
): Promise<Row | undefined> {
  // Nothing is at the former key any more: the row arrives by a move.
  if (!(await engine.rekey?.phaseOf(engine, name))) return row;
  const found = await engine.rekey?.find(engine, name, address, options);
  return found ?? (row?.properties.EntityType === name ? undefined : row);
}

/** False if the entity may be at its former key, or arrive from there. */
function isHere({ name }: Entity, row: Row | undefined): boolean {
  return row?.properties.EntityType === name && !row.properties.MovingFrom;
}

/**
 * One transaction: a point query, or a range query if further rows are needed. Undefined if the row, or the table of its period,
 * does not exist. Throws `busy` if writers keep changing the rows.
 */
export async function readJoinedRow(
  engine: Engine,
  entity: Entity,
  address: PointQuery,
  { fields, isWhole = false }: EntityRowOptions = {},
): Promise<Row | undefined> {
  const groups = groupsToRead(entity, fields);
  if (groups.length === 0) {
    const row = await readEntityRow(engine, entity, address);
    // A declaration that divides the entity no more leaves its list behind.
    const isPart = row?.properties.FurtherRows && entity.furtherRows && isOlder(entity, row);
    if (isPart) return readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns), isWhole });
    return !entity.formerKey || !engine.rekey || isHere(entity, row)
      ? row
      : findRekeyed(engine, entity, address, { fields, isWhole, row });
  }
  for (let attempt = 1, before = ''; ; attempt += 1) {
    const rows = await readRowsOf(engine, entity, address, groups);
    const own = rows.find(({ row }) => row === address.row);
    if (entity.formerKey && engine.rekey && !isHere(entity, own))
      return findRekeyed(engine, entity, address, { fields, isWhole, row: own });
    if (!own) return undefined;
    const { row, lost } = joinRows(entity, own, rows, groups);
    if (lost.length === 0) return row;
    // Every write of a further row changes the ETag of the own row. So under the same ETag, the row was lost before this read.
    if (own.etag !== before) {
      if (attempt === READ_ATTEMPTS) throw busy('Other requests keep changing the same entity.');
      if (before !== '') await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
      before = own.etag;
      continue;
    }
    if (isWhole) throw new FurtherRowLost(entity, address, lost);
    const left = formatListedRows(omit(listedRows(row.properties), lost) as Readonly<Record<string, string>>);
    return { ...row, properties: { ...row.properties, FurtherRows: left } };
  }
}

/**
 * Reads the row that a write begins from, as `readJoinedRow` does. That a further row is lost is told only of an entity that is known to the
 * caller; the row of any other one is returned without it.
 */
export async function readRowToWrite(
  engine: Engine,
  entity: Entity,
  address: PointQuery,
  { isKnown, ...options }: EntityRowOptions & { readonly isKnown: (values: Values) => boolean },
): Promise<Row | undefined> {
  try {
    return await readJoinedRow(engine, entity, address, options);
  } catch (error) {
    if (!(error instanceof FurtherRowLost)) throw error;
    const row = await readJoinedRow(engine, entity, address, { ...options, isWhole: false });
    const found = row && entityIn(entity, row);
    if (found && isKnown(found.values)) throw error;
    return row;
  }
}

/** The row of an entity and its further rows of these groups: one range query. */
async function readRowsOf(
  { storage }: Engine,
  entity: Entity,
  { table, partition, row, select }: PointQuery,
  groups: readonly string[],
): Promise<readonly Row[]> {
  const { first, before } = furtherRowRange(row, groups);
  const unread = groupsToRead(entity, Object.keys(entity.columns)).filter((group) => !groups.includes(group));
  const values = unread.map((group) => furtherRowType(entity.name, group));
  const where = values.map((type) => ({ name: 'EntityType', operator: 'ne', values: [type] }) as const);
  const range = { table, partition, before, select, where };
  // One transaction writes all rows of an entity.
  const { rows, more } = await readRange(storage, { ...range, from: row, limit: MAX_TRANSACTION_ACTIONS + 1 });
  if (!more) return rows;
  // Other keys that continue with a space lie between. The list of further rows tells whether a write came between the two reads.
  const further = await readRange(storage, { ...range, from: first });
  return [...rows.filter((own) => own.row === row), ...further.rows];
}

/** The rows of a page, each with its further rows. */
type EntityRows = Omit<RowPage, 'rows'> & { readonly rows: readonly Row[] };

/** Reads a range with the further rows that these fields need. `limit` is of entities. Throws `needs-repair` with `isWhole`. */
export async function readEntityRange(
  engine: Engine,
  entity: Entity,
  range: RowRange & { readonly limit: number },
  { fields, isWhole }: EntityRowOptions,
): Promise<EntityRows> {
  const { storage } = engine;
  if (!entity.furtherRows) return whileAtKey(engine, entity, () => readRange(storage, range));
  const read = (last?: Row) =>
    readRange(storage, withFurtherRows(entity, last ? { ...range, after: last.row, ...UNPAUSED } : range, fields));
  return whileAtKey(engine, entity, () => joinRange(engine, entity, { read, fields, isWhole, limit: range.limit }));
}

/** Reads the entities of a whole table. Without fields, with all further rows; `readEntityRange` reads those of a range. */
export async function scanEntityRows(
  engine: Engine,
  entity: Entity,
  scan: TableScan,
  { fields = Object.keys(entity.columns), isWhole, marksLost }: EntityRowOptions,
): Promise<EntityRows> {
  const { storage } = engine;
  if (!entity.furtherRows) return whileAtKey(engine, entity, () => scanTable(storage, scan));
  const read = (after?: Row) =>
    scanTable(storage, withFurtherRows(entity, after ? { ...scan, after, ...UNPAUSED } : scan, fields));
  return whileAtKey(engine, entity, () =>
    joinRange(engine, entity, { read, fields, isWhole, marksLost, limit: scan.limit }),
  );
}

/** Reads rows that are all at the key of this declaration. Throws `busy` if they are not, or may not have been. */
async function whileAtKey<Result>(engine: Engine, entity: Entity, read: () => Promise<Result>): Promise<Result> {
  if (entity.formerKey) await requireRekeyed(engine, entity);
  const result = await read();
  if (!entity.formerKey) await requireRekeyed(engine, entity);
  return result;
}

/** Adds further rows to a query. The row of one more entity tells that the rows before it have all been read. */
function withFurtherRows<Query extends TableScan | (RowRange & { readonly limit: number })>(
  entity: Entity,
  { where, orVersionBefore, ...query }: Query,
  fields: readonly string[] | undefined,
) {
  const [name = entity.name, ...further] = typesToRead(entity, fields);
  const type = [{ type: name, where, orVersionBefore }, ...further];
  return { ...query, type, counted: entity.name, limit: query.limit + 1 };
}

/** A read from another row than the caller's, which the caller could not resume. */
const UNPAUSED = { mayPause: false, resume: undefined } as const;

interface JoinedRange extends EntityRowOptions {
  /** Reads the rows after this one; without it, from the beginning of the range. */
  read(after?: Row): Promise<EntityRows>;
  readonly limit: number;
}

/** Joins the rows of a range. An entity whose rows are not all in the range is read by itself. */
async function joinRange(
  engine: Engine,
  entity: Entity,
  { read, fields, isWhole, marksLost, limit }: JoinedRange,
): Promise<EntityRows> {
  const groups = groupsToRead(entity, fields);
  const isOwn = ({ properties }: Row) => properties.EntityType === entity.name;
  let { rows, more, resume }: EntityRows = await read();
  // Further rows of entities that do not match a filter may fill what one read returns.
  while (more && resume === undefined && !rows.some(isOwn)) ({ rows, more, resume } = await read(rows.at(-1)));
  const keyOf = (partition: string, row: string) => JSON.stringify([partition, row]);
  const further = Map.groupBy(rows, ({ partition, row }) => keyOf(partition, parseFurtherRowKey(row)?.row ?? ''));
  const joined = rows.filter(isOwn).map((row) => {
    const needed = isOlder(entity, row) ? groupsToRead(entity, Object.keys(entity.columns)) : groups;
    return joinRows(entity, row, further.get(keyOf(row.partition, row.row)) ?? [], needed);
  });
  const isOver = joined.length > limit;
  // The next page begins with the entity at the end of the range, unless this page would be empty.
  const isCut = isOver || (more && joined.length > 1 && joined.at(-1)?.lost.length !== 0);
  const readAlone = async ({ row, lost }: (typeof joined)[number]) => {
    if (lost.length === 0) return row;
    const needed = isOlder(entity, row) ? Object.keys(entity.columns) : fields;
    const alone = await readJoinedRow(engine, entity, row, { fields: needed, isWhole });
    // An entity that is deleted meanwhile still has its place in the order of the page.
    if (!alone) return { ...row, properties: {} };
    return marksLost ? withLostFields(entity, alone, needed) : alone;
  };
  const page = await pMap(isCut ? joined.slice(0, -1) : joined, readAlone, { concurrency: READS_CONCURRENCY });
  return { rows: page, more: more || isOver, resume: isCut ? undefined : resume };
}

/** The row of an entity that has lost further rows: each wanted field that it lacks may have been in one of them. */
function withLostFields(entity: Entity, { row, properties, ...rest }: Row, fields: readonly string[] | undefined): Row {
  const lost = (fields ?? []).filter(
    (field) => !hasValue(properties[field]) && groupsToRead(entity, [field]).length > 0,
  );
  const marked = Object.fromEntries(lost.map((field) => [field, new WrongValue()]));
  return { ...rest, row, properties: { ...properties, ...marked } };
}

/** True if the row must be upgraded, which takes the whole entity. */
function isOlder(entity: Entity, { properties }: Row): boolean {
  return storedVersion(entity, properties) < entity.version;
}

/** The entity as it is stored: one transaction, see `readJoinedRow`. Undefined if there is no entity, or only a tombstone. */
export async function readLive(...read: Parameters<typeof readJoinedRow>): Promise<Live | undefined> {
  const [, entity] = read;
  const row = await readJoinedRow(...read);
  return row && entityIn(entity, row);
}

/** The error for an absent entity, a tombstone and a row of another type. */
export function notFound(entity: Entity, given: Values): RowkeyError {
  return entityError('not-found', entity, given, 'not found.');
}

/**
 * Decides whether a row is an entity, for every read, every write and the consistency check.
 *
 * If only the API writes an entity, the type of the row decides. Clients with a grant write some entities directly to
 * storage, and a grant limits only the keys: any property of such a row may have any value. For these entities, system
 * properties are ignored, the keys of the row decide the values of the key fields, and all other fields must match the
 * schema.
 */
type Judged =
  | { readonly is: 'entity'; readonly snapshot: Live }
  /** `isReachable`: the keys are valid for an entity, so its routes can replace and delete the row. */
  | { readonly is: 'invalid'; readonly reason: string; readonly snapshot: Live; readonly isReachable: boolean }
  /** A row of another entity, a copy, a tombstone, a placeholder. */
  | { readonly is: 'other' };

export function judgeRow(entity: Entity, row: Row): Judged {
  const isClients = entity.isWrittenByClients;
  const isOwn = isClients || (row.properties.EntityType === entity.name && !isCopy(row));
  const snapshot = isOwn ? toSnapshot(entity, row) : undefined;
  if (snapshot?.state !== 'live') return { is: 'other' };
  if (!isClients) return { is: 'entity', snapshot };
  const key = readKey(entity, row);
  const judged = key ? readFields(entity, row, key) : { reason: 'No entity has keys of this form.' };
  if ('values' in judged) return { is: 'entity', snapshot: { ...snapshot, values: judged.values } };
  return { is: 'invalid', ...judged, snapshot: { ...snapshot, values: {} }, isReachable: key !== undefined };
}

/** Returns the entity in a row, or undefined if the row is not an entity. */
export function entityIn(entity: Entity, row: Row): Live | undefined {
  const judged = judgeRow(entity, row);
  return judged.is === 'entity' ? judged.snapshot : undefined;
}

/** True if an entity could have the keys of the row. */
export function hasKeyOf(entity: Entity, row: Address): boolean {
  return readKey(entity, row) !== undefined;
}

/** Returns the key fields as read from the keys of the row, or undefined if the API never writes such keys. */
function readKey(entity: Entity, row: Address): Values | undefined {
  const inPartition = parseKey(entity.partition, row.partition);
  const inRow = parseKey(entity.row, entityRow(entity, row));
  if (!inPartition || !inRow) return undefined;
  // The keys contain each key field as it is, beside a hash or a period of it.
  const texts = Object.entries({ ...inPartition, ...inRow }).map(([field, value]) => [field, String(value)]);
  try {
    const key = validateTexts(entity, Object.fromEntries(texts), entity.keyFields);
    return hasKeys(entity, row, key) ? key : undefined;
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return undefined;
    throw error;
  }
}

function hasKeys(entity: Entity, row: Address, values: Values): boolean {
  const address = addressIfAny(entity, values);
  if (address?.table !== row.table || address.partition !== row.partition) return false;
  return address.row === entityRow(entity, row);
}

/** The form of an entity that is numbered rows. */
export function numberedRowsOf(entity: Entity): NumberedRows | undefined {
  return entity.features.find(({ layout }) => layout?.numbered)?.layout?.numbered;
}

/** The row key of the entity that a row belongs to. */
function entityRow(entity: Entity, { row }: Address): string {
  return numberedRowsOf(entity)?.entityRow(entity, row) ?? row;
}

function readFields(entity: Entity, row: Row, key: Values): { values: Values } | { reason: string } {
  const form = numberedRowsOf(entity);
  if (form) {
    const reason = form.reasonToRefuse(entity, row);
    return reason === undefined ? { values: key } : { reason };
  }
  const other = Object.entries(entity.columns).find(([name, type]) => !isOfType(type, row.properties[name]));
  // An earlier version may have had another type.
  if (other && storedVersion(entity, row.properties) === entity.version)
    return { reason: `The property "${other[0]}" has the wrong type; ${other[1]} is expected.` };
  try {
    const values: Values = { ...key, ...toValues(entity, row.properties) };
    const field = entity.keyFields.find((name) => !hasKeys(entity, row, { ...key, [name]: values[name] }));
    if (field) return { reason: `The field "${field}" differs from the keys of the row.` };
    const checked = validate(entity, omit(values, entity.decidedFields));
    const derived = Object.keys(entity.derived).find((name) => !isSame(values[name], checked[name]));
    if (derived) return { reason: `The derived field "${derived}" differs from its computed value.` };
    // A field that is not stored has no value, even if the schema has a default.
    return { values: pick(checked, Object.keys(values)) };
  } catch (error) {
    if (error instanceof RowkeyError && error.code !== 'needs-repair') return { reason: error.message };
    return { reason: 'The row cannot be upgraded: no earlier version of the declaration writes such rows.' };
  }
}

/** True if the API stores a field of this type in this form. Number types are not distinguished. */
function isOfType(type: ColumnType, property: unknown): boolean {
  if (property === undefined) return true;
  if (type === 'String' || type === 'Json') return typeof property === 'string';
  if (type === 'Boolean') return typeof property === 'boolean';
  return typeof property === 'number' || typeof property === 'bigint';
}
