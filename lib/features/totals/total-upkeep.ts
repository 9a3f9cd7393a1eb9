import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { z } from 'zod';
import { ROW_TYPES } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import type { Engine, Hold } from '../../define/declaration/engine.ts';
import type { Entity, VerifySubject } from '../../define/declaration/entity.ts';
import type { Suspicion } from '../../define/declaration/finding.ts';
import type { IndexEntry, Projection } from '../../define/declaration/projection.ts';
import { type Total, toIndex } from '../../define/declaration/totals.ts';
import {
  buildKey,
  compileTemplate,
  type KeyTemplate,
  parseKey,
  rangeOfPrefix,
} from '../../define/keys/key-template.ts';
import { addressOf, remoteIndexOf, rowsAt, selectIndexed } from '../../define/places/index-entries.ts';
import { compareInstants, compareTexts } from '../../define/schema/instants.ts';
import { repairEntries } from '../../engine/reconcile/reconcile.ts';
import { requireOwn } from '../../engine/shared-tables.ts';
import { createSharedWrites } from '../../engine/write/shared-writes.ts';
import { isExplaining } from '../../storage/explain.ts';
import {
  type Action,
  type Address,
  deleteSame,
  mostActions,
  type Properties,
  type Row,
  readRange,
  readRow,
  tryAction,
  trySubmit,
} from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import { addDecimals } from './decimal.ts';

/**
 * Maintained totals. The partition of a group has one row for each entity, its contribution, and one row with the total:
 *
 *   c_{group}_{key of the entity}   the values that the entity contributes
 *   t_{group}                       how many entities, and their sums and extremes
 *
 * Both rows change in one entity group transaction, under the ETag of the total: the total changes by the difference between the old
 * and the new contribution. A message that arrives twice or late finds its contribution and changes nothing. Because each
 * change of a contribution writes the total, contributions that are read after the total belong to it if its ETag still holds.
 */

/** The `EntityType` of a total's row. */
export const TOTAL = ROW_TYPES.total;
const CONTRIBUTIONS_CONCURRENCY = 16;

/** The amounts of a group. An extreme is absent if no entity has the field. */
interface Amounts {
  readonly count: number;
  /** Decimal texts. */
  readonly sum: Readonly<Record<string, string>>;
  readonly min: Readonly<Record<string, Extreme>>;
  readonly max: Readonly<Record<string, Extreme>>;
}
type Extreme = number | string;

const Contribution = z.record(z.string(), z.union([z.number(), z.string()]));
type Contribution = z.infer<typeof Contribution>;
const Extremes = z.record(z.string(), z.union([z.number(), z.string()]));
const StoredAmounts = z.object({
  count: z.int().min(0),
  sum: z.record(z.string(), z.string().regex(/^-?\d+(\.\d+)?$/)),
  min: Extremes,
  max: Extremes,
});

/** The property of a contribution: the values of the contributed fields. */
function toContribution(declared: Total, values: Values): Properties {
  const given = Object.entries(pick(values, [...declared.sum, ...declared.min, ...declared.max]));
  return {
    Values: JSON.stringify(Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== null))),
  };
}

function isContribution({ properties }: Row): boolean {
  return properties.Values !== undefined && properties.SourceRow !== undefined;
}

function contributionIn(row: Row | undefined): Contribution | undefined {
  return row && isContribution(row) ? (parseJson(Contribution, row.properties.Values) ?? {}) : undefined;
}

/** The amounts in the row of a total; undefined if the row is missing, or was changed by hand to something else. */
function amountsIn(declared: Total, row: Row | undefined): Amounts | undefined {
  const stored = parseJson(StoredAmounts, row?.properties.Amounts);
  if (!stored) return undefined;
  // The declaration may have got or lost fields since.
  const sum = Object.fromEntries(declared.sum.map((field) => [field, stored.sum[field] ?? '0']));
  return {
    count: stored.count,
    sum,
    min: pickExtremes(stored.min, declared.min),
    max: pickExtremes(stored.max, declared.max),
  };
}

function pickExtremes(extremes: Readonly<Record<string, Extreme>>, fields: readonly string[]): Record<string, Extreme> {
  return Object.fromEntries(Object.entries(extremes).filter(([field]) => fields.includes(field)));
}

function parseJson<Schema extends z.ZodType>(schema: Schema, text: unknown): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(String(text))).data;
  } catch {
    return undefined;
  }
}

function noAmounts({ sum }: Pick<Total, 'sum'>): Amounts {
  return { count: 0, sum: Object.fromEntries(sum.map((field) => [field, '0'])), min: {}, max: {} };
}

function addUp(declared: Total, contributions: Iterable<Contribution>): Amounts {
  let amounts = noAmounts(declared);
  for (const after of contributions)
    amounts = changeAmounts(declared, amounts, { before: undefined, after }) ?? amounts;
  return amounts;
}

function combineAmounts(declared: Total, one: Amounts, other: Amounts): Amounts {
  const sum = declared.sum.map((field) => [field, addDecimals(one.sum[field] ?? '0', other.sum[field] ?? '0')]);
  return {
    count: one.count + other.count,
    sum: Object.fromEntries(sum),
    min: changeExtremes(declared.min, one.min, { before: undefined, after: other.min }, isLess) ?? {},
    max: changeExtremes(declared.max, one.max, { before: undefined, after: other.max }, isGreater) ?? {},
  };
}

const isLess = (one: Extreme, other: Extreme) => compareExtremes(one, other) < 0;
const isGreater = (one: Extreme, other: Extreme) => compareExtremes(one, other) > 0;

/** Two texts of the same instant have an order, too, so that a recount finds the same one. */
function compareExtremes(one: Extreme, other: Extreme): number {
  if (typeof one === 'string' && typeof other === 'string')
    return compareInstants(one, other) || compareTexts(one, other);
  return Number(one > other) - Number(one < other);
}

interface ContributionChange {
  readonly before: Contribution | undefined;
  readonly after: Contribution | undefined;
}

/** Undefined if only the contributions tell the new amounts: an extreme is gone, or the amounts do not include `before`. */
function changeAmounts(
  declared: Total,
  { count, sum, min, max }: Amounts,
  { before, after }: ContributionChange,
): Amounts | undefined {
  const counted = count + Number(after !== undefined) - Number(before !== undefined);
  if (counted < 0) return undefined;
  if (counted === 0) return noAmounts(declared);
  const numberIn = (values: Contribution | undefined, field: string) =>
    typeof values?.[field] === 'number' ? values[field] : 0;
  const sums = declared.sum.map((field) => [
    field,
    addDecimals(sum[field] ?? '0', numberIn(after, field), -numberIn(before, field)),
  ]);
  const least = changeExtremes(declared.min, min, { before, after }, isLess);
  const greatest = changeExtremes(declared.max, max, { before, after }, isGreater);
  return least && greatest && { count: counted, sum: Object.fromEntries(sums), min: least, max: greatest };
}

function changeExtremes(
  fields: readonly string[],
  extremes: Readonly<Record<string, Extreme>>,
  { before, after }: ContributionChange,
  isBeyond: (one: Extreme, other: Extreme) => boolean,
): Record<string, Extreme> | undefined {
  const changed = { ...extremes };
  for (const field of fields) {
    const [current, left, next] = [extremes[field], before?.[field], after?.[field]];
    const isReplaced = next !== undefined && (current === undefined || !isBeyond(current, next));
    if (left !== undefined && !isReplaced && (current === undefined || !isBeyond(current, left))) return undefined;
    if (isReplaced) changed[field] = next;
  }
  return changed;
}

/** A group: the address of its total, and the range of its contributions. */
interface Group {
  readonly total: Address;
  readonly prefix: string;
}

/** The group of a total or a contribution, from the fields in its row key. */
function groupOf({ table, totalRow, contributions }: Total, partition: string, values: Values): Group {
  const total = { table, partition, row: buildKey(totalRow, values) };
  return { total, prefix: buildKey(contributions, values) };
}

/** Reads the contributions of a group, by row key: one transaction for each 1,000. */
async function readContributions(
  storage: Storage,
  { total: { table, partition }, prefix }: Group,
  { first }: { readonly first?: number } = {},
): Promise<Map<string, Contribution>> {
  const select = ['Values', 'SourceRow'];
  const { rows } = await readRange(storage, { table, partition, ...rangeOfPrefix(prefix), select, limit: first });
  return new Map(
    rows.flatMap((row) => {
      const contribution = contributionIn(row);
      return contribution ? [[row.row, contribution] as const] : [];
    }),
  );
}

interface Request {
  readonly declared: Total;
  readonly group: Group;
  readonly entry: IndexEntry;
  /** The contribution that the entity makes; undefined if it makes none. */
  readonly properties: Properties | undefined;
  readonly isOwn: (row: Row) => boolean;
  readonly hold: Hold;
  /** True if the total may not include the contribution that is stored. */
  readonly isRepair: boolean;
  /** True if no contribution is probably stored: it is inserted without a read. */
  readonly isNew?: boolean;
}

const submitRequest = createSharedWrites<Request>({
  write: writeGroup,
  most: (storage) => mostActions(storage) - 1,
  distinctBy: ({ entry }) => entry.row,
});

/** Makes a contribution and its total agree with an entity. False if the group changed concurrently. */
async function settleContribution(storage: Storage, request: Request): Promise<boolean> {
  const { table, partition, row } = request.group.total;
  return submitRequest(storage, JSON.stringify([table, partition, row]), request);
}

/**
 * The total is read first: its ETag then covers the contributions too. A contribution that is right is
 * settled by a new ETag of the total: a stalled reconciler may be about to change the contribution under the old one.
 *
 * A repair cannot know whether the total includes the contribution: the row may have been changed by hand, or its message may still
 * wait in the queue and will then find the contribution. So a repair that changes a contribution recounts the group.
 */
async function writeGroup(
  storage: Storage,
  all: readonly Request[],
  keepHolds: () => Promise<{ readonly requests: readonly Request[]; readonly signal: AbortSignal }>,
): Promise<boolean> {
  const [first] = all;
  if (!first) return true;
  const { declared, group } = first;
  const total = await readRow(storage, group.total);
  requireOwn(total, 'a total');
  const isEmpty = (row: Row) => amountsIn(declared, row)?.count === 0;
  const read = all.every(({ isNew }) => isNew) ? [] : all;
  const found = new Map(
    await pMap(read, async ({ entry }) => [entry.row, await readRow(storage, entry)] as const, {
      concurrency: CONTRIBUTIONS_CONCURRENCY,
    }),
  );
  const { requests, signal } = await keepHolds();
  for (const row of found.values()) requireOwn(row, 'a contribution to a total');
  const changes = requests.map((request) => ({ ...changeOf(request, found.get(request.entry.row)), request }));
  const actions = changes.flatMap(({ action }) => action ?? []);
  if (actions.length === 0 && !requests.some(({ properties }) => properties)) {
    // A process that died after it emptied the group left the total.
    if (total && isEmpty(total)) await deleteSame(storage, total, isEmpty);
    return true;
  }
  const isRepair = changes.some(({ action, request }) => action && request.isRepair);
  const isNew = !requests.some((request) => request.isRepair) && ![...found.values()].some(Boolean);
  let amounts = isRepair ? undefined : (amountsIn(declared, total) ?? (isNew ? noAmounts(declared) : undefined));
  for (const change of changes) amounts = amounts && changeAmounts(declared, amounts, change);
  if (!amounts) {
    const contributions = await readContributions(storage, group);
    for (const { request, after } of changes)
      if (after) contributions.set(request.entry.row, after);
      else contributions.delete(request.entry.row);
    amounts = addUp(declared, contributions.values());
  }
  const { table, partition, row } = group.total;
  const transaction = { table, partition, actions: [...actions, totalAction(row, total, amounts)], signal };
  const etags = await trySubmit(storage, transaction);
  if (!etags) return false;
  const etag = isExplaining() ? '' : etags.get(row);
  // A delete in a transaction is unconditional, so the total of an empty group is deleted afterwards, under its ETag.
  if (amounts.count === 0 && etag !== undefined) await deleteSame(storage, { ...group.total, etag }, isEmpty);
  return true;
}

function changeOf(
  { entry, properties, isOwn }: Request,
  row: Row | undefined,
): ContributionChange & { action?: Action } {
  const before = contributionIn(row);
  if (!properties)
    return row && isOwn(row)
      ? { before, after: undefined, action: { kind: 'delete', row: entry.row } }
      : { before, after: before };
  const after = parseJson(Contribution, properties.Values);
  if (!row) return { before: undefined, after, action: { kind: 'insert', row: entry.row, properties } };
  if (isSameContribution(row, properties)) return { before, after };
  return { before, after, action: { kind: 'replace', row: entry.row, properties, etag: row.etag } };
}

function isSameContribution({ properties }: Row, expected: Properties): boolean {
  return (['Values', 'SourcePartition', 'SourceRow', 'EntityType'] as const).every(
    (name) => properties[name] === expected[name],
  );
}

/** Writes the amounts of a total under the ETag of its row. */
function totalAction(row: string, found: Row | undefined, amounts: Amounts): Action {
  const properties = { EntityType: TOTAL, Amounts: JSON.stringify(amounts) };
  return found ? { kind: 'replace', row, properties, etag: found.etag } : { kind: 'insert', row, properties };
}

/** The contributions of the entities to totals. */
export function toProjection(entity: Entity, name: string, declared: Total): Projection {
  const { table, partition, sum, min, max } = declared;
  // The key of the entity gives each contribution a row of its own.
  const row = compileTemplate(`${declared.contributions.template}${entity.partition.template}_${entity.row.template}`);
  const at = { table, partition, row };
  return {
    name,
    at,
    settle: 'inline',
    shape: {
      kind: TOTAL,
      table,
      partition: partition.template,
      row: declared.row.template,
      copies: { sum, min, max },
    },
    rows: (values) => rowsAt(name, at, selectIndexed(toIndex(declared), values)),
    properties(values) {
      const { partition: SourcePartition, row: SourceRow } = addressOf(entity, values);
      return { EntityType: entity.name, SourcePartition, SourceRow, ...toContribution(declared, values) };
    },
    merge: {
      settle: (storage, entry, part) =>
        settleContribution(storage, { declared, group: groupOfEntry(declared, row, entry), entry, ...part }),
      holds: (found, { properties }) =>
        found !== undefined && properties !== undefined && isSameContribution(found, properties),
      sumOf: (entry) => groupOfEntry(declared, row, entry).total,
    },
  };
}

function groupOfEntry(declared: Total, template: KeyTemplate, { partition, row }: IndexEntry): Group {
  const values = parseKey(template, row);
  if (!values) throw new Error(`The key of a contribution in ${declared.table} does not match its template.`);
  return groupOf(declared, partition, values);
}

/** A total that is missing, reported once: for the first contribution of its group. */
export async function findLostTotal(
  engine: Engine,
  entity: Entity,
  { declared, entry, subject }: { declared: Total; entry: IndexEntry; subject: VerifySubject },
): Promise<Suspicion[]> {
  const remote = remoteIndexOf(entity, entry);
  if (!remote) return [];
  const group = groupOfEntry(declared, remote.at.row, entry);
  if (await readRow(engine.storage, group.total)) return [];
  if (!(await readContributions(engine.storage, group, { first: 1 })).has(entry.row)) return [];
  const repair = () => repairEntries(engine, entity, subject.address, entry);
  return [{ kind: 'wrong-total', of: entry.index, ...group.total, repair }];
}

/** Compares a row with the total of its contributions. Undefined for a row that is no total. */
export async function checkTotal(
  storage: Storage,
  name: string,
  declared: Total,
  row: Row,
): Promise<readonly Suspicion[] | undefined> {
  if (row.properties.EntityType !== TOTAL) return undefined;
  const values = parseKey(declared.totalRow, row.row);
  // No group has such a key, and a range would return the row.
  if (!values) return [{ kind: 'orphaned', of: name, table: row.table, partition: row.partition, row: row.row }];
  // The row was read before the contributions, and each of them changes it: its ETag tells that they are still the same.
  const contributions = await readContributions(storage, groupOf(declared, row.partition, values));
  const amounts = addUp(declared, contributions.values());
  const isEmpty = amounts.count === 0;
  if (!isEmpty && isDeepStrictEqual(amountsIn(declared, row), amounts)) return [];
  const action = isEmpty
    ? ({ kind: 'delete', row: row.row, etag: row.etag } as const)
    : totalAction(row.row, row, amounts);
  const { table, partition, row: key } = row;
  const repair = () => tryAction(storage, row, action);
  return [{ kind: isEmpty ? 'orphaned' : 'wrong-total', of: name, table, partition, row: key, repair }];
}

function readAmounts(entity: Entity, declared: Total, row: Row): Amounts {
  const amounts = amountsIn(declared, row);
  if (amounts) return amounts;
  throw new RowkeyError('needs-repair', `A row of the totals ${declared.table} of ${entity.name} cannot be read.`);
}

/** Beyond the largest number, that number: JSON has no infinity. */
function toNumber(text: string): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, Number(text)));
}

/** The total of a group in the rows of its buckets. A sum becomes a JSON number only here, so it is rounded once. */
export function presentTotal(
  entity: Entity,
  declared: Total,
  { given, rows }: { readonly given: Values; readonly rows: readonly Row[] },
): Values & { readonly count: number } {
  const all = rows.map((row) => readAmounts(entity, declared, row));
  const { count, sum, min, max } = all.reduce(
    (one, other) => combineAmounts(declared, one, other),
    noAmounts(declared),
  );
  const sums = Object.entries(sum).map(([field, text]) => [field, toNumber(text)]);
  return { group: pick(given, declared.groupFields), count, sum: Object.fromEntries(sums), min, max };
}
