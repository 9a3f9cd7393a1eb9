import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { z } from 'zod';
import type { Entity, Feature } from '../define/declaration/entity.ts';
import { type Finding, type Suspicion, toFinding } from '../define/declaration/finding.ts';
import { parseKey } from '../define/keys/key-template.ts';
import { tablesOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { declarationOf, hasKeyOf, judgeRow, requireRekeyed } from '../engine/read/entity-rows.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { furtherTypes } from '../engine/reconcile/check-further-rows.ts';
import { listFormOf } from '../engine/write/siblings.ts';
import type { IsOwnRow } from '../storage/copy-rows.ts';
import { transactionsSoFar } from '../storage/cost.ts';
import { isMarked, MARKED_TYPES } from '../storage/row-marks.ts';
import { type Address, type Row, readRow, scanTable, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { addEntries } from './add-entries.ts';
import { recordAlone, recordForeign } from './foreign-rows.ts';
import { createKnownFindings, type KnownFindings } from './known-findings.ts';
import { ownRowsOf } from './resources.ts';
import { surviveRow } from './survive-row.ts';
import { checkEntity } from './verify-entity.ts';
import { checkLeftOver } from './verify-index-rows.ts';

/**
 * Consistency check: scans the tables of an entity and compares every index, copy, list, count and blob with the entities, in
 * both directions: rows that an entity needs, and rows that no entity needs. It finds errors that the write protocol cannot
 * prevent: a row that was changed by hand, a process that stalled past its hold, a restored table, a new index. Queues may be
 * behind, so each suspicious row is checked a second time after a delay. Repairs use ETags, so writers may run concurrently.
 */

/**
 * The start of the next page. `table` is an index into the tables of the entity, `after` the last checked row, `member` the last
 * checked member if only a part of a list was checked, and `left` the number of findings not repaired so far.
 */
export const VerifyPosition = z.object({
  table: z.int(),
  after: z.object({ partition: z.string(), row: z.string(), member: z.string().optional() }).optional(),
  left: z.int().default(0),
  /** What was found and not repaired so far: see `KnownFindings`. */
  known: z.array(z.string()).optional(),
  /** The rows of other programs so far. */
  foreign: z.int().optional(),
  /** Of a move to another key: true if an entity has been moved since the pass over the tables began. */
  hasMoved: z.boolean().optional(),
  /** Of a move to another key: true for a pass that reports what cannot be moved. */
  isLast: z.boolean().optional(),
});
export type VerifyPosition = z.infer<typeof VerifyPosition>;

/** How much of a walk over the rows of an entity one page is. */
export interface VerifyPageOptions {
  readonly position?: VerifyPosition | undefined;
  /** The most rows of a page. */
  readonly top: number;
  /** A page ends after this many storage transactions. A check has as many again for its second look and the repairs. */
  readonly maxTransactions?: number;
}

export interface VerifyOptions extends VerifyPageOptions {
  /** `safe` leaves out repairs that drop values which may be stored nowhere else. */
  readonly repair: boolean | 'safe';
  /** Limits the check to this index, while it is built. */
  readonly only?: string | undefined;
  /** The delay in milliseconds before the second check of suspicious rows. */
  readonly patience?: number;
  /** Tells rows of the app, of all its entities, from those of other programs. */
  readonly isOwnRow?: IsOwnRow;
}

export interface VerifyPage {
  readonly checked: number;
  readonly findings: readonly Finding[];
  readonly next: VerifyPosition | undefined;
  /** The findings not repaired so far, on this page and the pages before it. */
  readonly left: number;
  /** The rows of other programs on this page, which are not checked. */
  readonly foreign?: number;
}

const UNITS_CONCURRENCY = 8;
/** Each member takes a lookup, and a list may have any number of members. */
const MEMBERS_IN_UNIT = 16;
/** The default for the first check of a page, and again for the second check with the repairs. */
const PAGE_TRANSACTIONS = 1_000;
/** Queues are polled at least every second. */
const PATIENCE_MS = 2_500;
/** A repair fails if a concurrent writer was faster; the row is then checked again. */
const REPAIR_ATTEMPTS = 5;

/** True if the entity may become inconsistent or clients write it, so that it needs a regular check. Tables of periods are not checked. */
export function canVerify(entity: Entity): boolean {
  if (entity.features.some(({ layout }) => layout?.periods)) return false;
  const isVerified = ({ check, projections, stored }: Feature) => Boolean(check || projections || stored?.blobs);
  const isComputed = Object.keys(entity.derived).length > 0;
  return entity.isWrittenByClients || isComputed || entity.archive !== undefined || entity.features.some(isVerified);
}

/** Checks one page of rows. Throws as reads and writes do; the same page can then be requested again. */
export const verifyPage = inPattern(
  'consistency check',
  async (engine: Engine, declared: Entity, options: VerifyOptions): Promise<VerifyPage> => {
    const entity = await declarationOf(engine, declared);
    const { position = { table: 0, left: 0 }, top, repair, only, patience = PATIENCE_MS, maxTransactions } = options;
    // An entity that gets another key has its entries once it has arrived, and reads through the index would miss it until then.
    if (only !== undefined) await requireRekeyed(engine, entity);
    const tables = tablesToCheck(entity, only);
    const table = tables[position.table];
    if (table === undefined) return { checked: 0, findings: [], next: undefined, left: position.left };
    const { after } = position;
    const readRows = () => scanTable(engine.storage, { table, after, limit: top, bound: ANY_ROWS });
    const { rows, more } = await readRows();
    const units = splitRows(engine, entity, { table, rows, after });
    const known = createKnownFindings(position.known);
    const readAgain = async () => (await readRows()).rows;
    const limits = { repair, only, patience, maxTransactions, known, readAgain };
    const { checked, found, isEnd } = await checkUnits(engine, entity, units, limits);
    // Another program may write a row that is no entity at any time: an index is built without it.
    const isLeft = ({ repaired, kind }: Finding) => !repaired && !(only && entity.existing && kind === 'invalid');
    const left = position.left + found.filter(isLeft).length;
    const { isOwnRow = ownRowsOf([declared]) } = options;
    const others = checked.filter(({ unit }) => unit.isWhole && !isOwnRow(unit.row));
    if (others.length > 0 && table === entity.table) await recordForeign(engine, entity);
    const foreign = others.length;
    const allForeign = foreign + (position.foreign ?? 0);
    const page = { checked: checked.filter(({ unit }) => unit.isWhole).length, findings: found, left, foreign };
    const follow = { left, foreign: allForeign, ...(known.texts.length > 0 ? { known: [...known.texts] } : {}) };
    const last = more || !isEnd ? checked.at(-1)?.unit : undefined;
    if (last) {
      const { row, isWhole, members } = last;
      const member = isWhole ? undefined : members?.at(-1);
      return { ...page, next: { ...position, after: { partition: row.partition, row: row.row, member }, ...follow } };
    }
    const isLast = position.table + 1 === tables.length;
    if (isLast && only === undefined && allForeign === 0) await recordAlone(engine, entity);
    return { ...page, next: isLast ? undefined : { table: position.table + 1, ...follow } };
  },
);

/** Checks units, as many as there are transactions for, and repairs what it finds. */
async function checkUnits(
  engine: Engine,
  entity: Entity,
  units: AsyncGenerator<Unit, undefined>,
  {
    repair,
    only,
    patience,
    maxTransactions,
    known,
    readAgain,
    concurrency = 1,
  }: Pick<VerifyOptions, 'repair' | 'only'> & {
    readonly patience: number;
    readonly maxTransactions: number | undefined;
    readonly known: KnownFindings;
    /** Of a page: reads its rows again. */
    readonly readAgain?: () => Promise<readonly Row[]>;
    /** How many units are repaired at a time. By default one after another, so that a difference that two of them show is found once. */
    readonly concurrency?: number;
  },
): Promise<{ readonly checked: readonly Checked[]; readonly found: readonly Finding[]; readonly isEnd: boolean }> {
  const partitions = new Set<string>();
  const check = (unit: Unit, isFirstLook = false) =>
    surviveRow<readonly Suspicion[]>(
      () => checkUnit(engine, entity, unit, { partitions, only, isFirstLook }),
      (reason) => [{ kind: 'invalid', of: entity.name, ...addressIn(unit.row), reason }],
    );
  const look = async (unit: Unit) => ({ unit, suspicions: await check(unit, true) });
  let isOver = limitTransactions(maxTransactions);
  let checked: Checked[] = [];
  // One entity may need hundreds of lookups, so a page may end early. The next page continues after the last unit.
  let isEnd = false;
  do {
    const some = await takeFirst(units, UNITS_CONCURRENCY);
    checked.push(...(await pMap(some, look, { concurrency: UNITS_CONCURRENCY })));
    isEnd = some.length < UNITS_CONCURRENCY;
  } while (!isEnd && !isOver());
  const found: Finding[] = [];
  let suspected = checked.filter(({ suspicions }) => suspicions.length > 0);
  if (only !== undefined && repair && readAgain) {
    const missing = suspected.filter((one) => isWithoutEntries(entity, one)).map(({ unit }) => unit.row);
    const added = await addEntries(engine, entity, missing, { only, readAgain });
    const isAdded = ({ unit }: Checked) => added.has(unit.row);
    found.push(...suspected.filter(isAdded).flatMap(({ suspicions }) => suspicions.map((one) => toFinding(one, true))));
    suspected = suspected.filter((one) => !isAdded(one));
  }
  // A build repairs at once: a message that comes later finds nothing left to do.
  const isSure = only !== undefined && suspected.every(({ suspicions }) => suspicions.every((one) => one.repair));
  if (suspected.length > 0 && !isSure) await sleep(patience);
  let suspicious = suspected.map(({ unit }) => unit);
  const sums = new Set<string>();
  isOver = limitTransactions(maxTransactions);
  let refused = new Map<Unit, RefusedRepairs>();
  for (let attempts = REPAIR_ATTEMPTS; suspicious.length > 0; attempts -= 1) {
    partitions.clear();
    const before = refused;
    refused = new Map();
    const isFirstTime = attempts === REPAIR_ATTEMPTS;
    let end = suspicious.length;
    const settle = async (unit: Unit, index: number) => {
      if (isFirstTime && index > 0 && index < end && isOver()) end = index;
      if (index >= end) return;
      const suspicions = await check(unit);
      found.push(...mendedWith(before.get(unit), suspicions));
      const left: Suspicion[] = [];
      const again: Suspicion[] = [];
      let isChanged = false;
      for (const suspicion of suspicions) {
        const { repair: mend, losesValues = false, kind } = suspicion;
        if (known.explains(suspicion)) continue;
        const isToRepair = repair === 'safe' ? !losesValues : repair;
        // A count is recounted from the rows beside it, so no other finding can explain it.
        const mayRepair = isToRepair && mend !== undefined && !(known.isFull && kind === 'wrong-total');
        if (mayRepair && (await surviveRow(mend, () => false))) {
          found.push(toFinding(suspicion, true));
          isChanged = true;
          if (suspicion.sum) sums.add(textOf(suspicion.sum));
        } else if (mayRepair && attempts > 1 && !isOver()) again.push(suspicion);
        else left.push(suspicion);
      }
      // Checked once more, with all that is left of it.
      if (again.length > 0) {
        refused.set(unit, { suspicions: again, isChanged });
        return;
      }
      for (const suspicion of left) known.add(suspicion);
      found.push(...left.map((suspicion) => toFinding(suspicion, false)));
    };
    // Repairs of one row refuse each other only once: the second time, they come one after another.
    await pMap(suspicious, settle, { concurrency: isFirstTime ? concurrency : 1 });
    const next = suspicious[end];
    if (next) {
      // The next page begins with this unit.
      checked = checked.slice(
        0,
        checked.findIndex(({ unit }) => unit === next),
      );
      isEnd = false;
    }
    // A sum may be wrong after its entries were repaired, and an entry after the copies in its entity were.
    const ofSums = checked.map(({ unit }) => unit).filter((unit) => sums.has(textOf(unit.row)) && !refused.has(unit));
    suspicious = [...refused.keys(), ...ofSums];
    sums.clear();
  }
  return { checked, found, isEnd };
}

/** Checks some rows of an entity, or some members of its lists, and repairs what loses no value. Returns what it has found. */
export async function repairRows(
  engine: Engine,
  entity: Entity,
  rows: readonly Pick<Unit, 'row' | 'members'>[],
  { patience = PATIENCE_MS }: Pick<VerifyOptions, 'patience'> = {},
): Promise<readonly Finding[]> {
  async function* toUnits(): AsyncGenerator<Unit, undefined> {
    for (const row of rows) yield { ...row, isWhole: true };
  }
  const options = { repair: 'safe', only: undefined, patience, maxTransactions: Number.POSITIVE_INFINITY } as const;
  const known = createKnownFindings();
  const { found } = await checkUnits(engine, entity, toUnits(), { ...options, known, concurrency: UNITS_CONCURRENCY });
  return found;
}

/** True if nothing is wrong with the row of an entity but that it has no entries in the index that is built. */
function isWithoutEntries(entity: Entity, { unit: { row }, suspicions }: Checked): boolean {
  const isMissing = ({ kind, repair, losesValues }: Suspicion) => kind === 'missing' && repair && !losesValues;
  return isReadWhole(entity) && row.properties.EntityType === entity.name && suspicions.every(isMissing);
}

/** True if a scan reads all values of an entity. */
function isReadWhole({ furtherRows, formerKey }: Entity): boolean {
  return !furtherRows && !formerKey;
}

function textOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

function addressIn({ table, partition, row }: Row): Address {
  return { table, partition, row };
}

/** Repairs that were refused. */
interface RefusedRepairs {
  readonly suspicions: readonly Suspicion[];
  /** True if another repair has changed the same rows. */
  readonly isChanged: boolean;
}

/** What is not found any more because the repair of another finding has repaired it, too. */
function mendedWith(refused: RefusedRepairs | undefined, now: readonly Suspicion[]): Finding[] {
  if (!refused?.isChanged) return [];
  const isSame = (one: Suspicion, other: Suspicion) =>
    isDeepStrictEqual(toFinding(one, true), toFinding(other, true)) && one.member === other.member;
  return refused.suspicions
    .filter((suspicion) => !now.some((other) => isSame(suspicion, other)))
    .map((suspicion) => toFinding(suspicion, true));
}

/** The build of totals begins with their table: a total to which contributions are added must be the sum of the others. */
function tablesToCheck(entity: Entity, only: string | undefined): string[] {
  if (only === undefined) return tablesOf(entity);
  return [...(entity.totals[only] ? [entity.totals[only].table] : []), entity.table];
}

/** Returns a function that tells whether `maxTransactions` storage transactions were made since this call. */
export function limitTransactions(maxTransactions = PAGE_TRANSACTIONS): () => boolean {
  const before = transactionsSoFar();
  return () => transactionsSoFar() - before >= maxTransactions;
}

interface Checked {
  readonly unit: Unit;
  readonly suspicions: readonly Suspicion[];
}

/** Checked and repaired as a whole: a row, or some members of a list. */
interface Unit {
  readonly row: Row;
  readonly members?: readonly string[];
  /** True if no members of the row follow. */
  readonly isWhole: boolean;
}

/** Yields the rows of a page in order, a long list in parts. The first parts may be the rest of a list from the last page. */
async function* splitRows(
  { storage }: Engine,
  entity: Entity,
  { table, rows, after }: { table: string; rows: readonly Row[]; after: VerifyPosition['after'] },
): AsyncGenerator<Unit, undefined> {
  const form = listFormOf(entity);
  if (form && after?.member !== undefined) {
    const row = await form.readAny(storage, { table, ...after });
    if (row) yield* splitMembers(row, form.members(row), after.member);
  }
  for (const found of rows) {
    const row = form ? await form.complete(storage, found) : found;
    const members = row && form ? form.members(row) : [];
    if (row && members.length > MEMBERS_IN_UNIT) yield* splitMembers(row, members, '');
    else yield { row: found, isWhole: true };
  }
}

function* splitMembers(row: Row, all: readonly string[], after: string): Generator<Unit> {
  const members = all.filter((member) => member > after).sort();
  for (let at = 0; at < members.length; at += MEMBERS_IN_UNIT) {
    const end = at + MEMBERS_IN_UNIT;
    yield { row, members: members.slice(at, end), isWhole: end >= members.length };
  }
}

async function takeFirst<Item>(items: AsyncGenerator<Item, undefined>, count: number): Promise<Item[]> {
  const first: Item[] = [];
  for (; first.length < count; ) {
    const { value, done } = await items.next();
    if (done) break;
    first.push(value);
  }
  return first;
}

interface Scope {
  /** The pairs of pattern and partition that are already checked. */
  readonly partitions: Set<string>;
  readonly only: string | undefined;
  /** True if the row was read just now. */
  readonly isFirstLook: boolean;
}

async function checkUnit(
  engine: Engine,
  entity: Entity,
  { row, members }: Unit,
  { partitions, only, isFirstLook }: Scope,
): Promise<Suspicion[]> {
  const { EntityType, SourceRow } = row.properties;
  const address = addressIn(row);
  if (entity.isWrittenByClients) return checkRefused(engine, entity, address);
  const isArchive = row.table === entity.archive?.table;
  const kind = isArchive ? entity.archive : entity;
  if (!kind) return [];
  const suspicions: Suspicion[] = [];
  if (EntityType === kind.name && SourceRow === undefined && row.table === kind.table)
    suspicions.push(
      ...(await checkEntity(engine, kind, address, {
        only,
        known: only !== undefined && isFirstLook && isReadWhole(kind) ? row : undefined,
      })),
    );
  else if (only === undefined && isOfNoType(kind, row))
    suspicions.push({
      kind: 'invalid',
      of: kind.name,
      ...address,
      reason: 'The row has the key of an entity and the type of none.',
    });
  else if (only === undefined || row.table !== entity.table)
    suspicions.push(...(await checkLeftOver(engine, kind, row, members)));
  if (row.table !== entity.table || only !== undefined) return suspicions;
  for (const { name, check } of entity.features) {
    const once = JSON.stringify([name, row.partition]);
    if (!check?.partition?.types(entity).includes(String(EntityType)) || partitions.has(once)) continue;
    partitions.add(once);
    suspicions.push(...(await check.partition.check(engine, entity, row)));
  }
  return suspicions;
}

/** True if no other declaration can have this row: keys of two never overlap. Rows of other programs have no marks. */
function isOfNoType(entity: Entity, row: Row): boolean {
  const { EntityType, SourceRow } = row.properties;
  // The key of a child continues that of its parent.
  const children = entity.children.map(({ name }) => name);
  const known = [entity.name, ...children, ...MARKED_TYPES, ...furtherTypes(entity)];
  const isKnown = known.includes(String(EntityType)) || SourceRow !== undefined;
  return row.table === entity.table && !isKnown && isMarked(row.properties) && hasKeyOf(entity, row);
}

/**
 * Checks a row of an entity that clients write. DELETE removes a rejected row; the repair removes a row that no route reaches, if it has the
 * type of the entity. Another program may have written any other one.
 */
async function checkRefused(engine: Engine, entity: Entity, address: Address): Promise<Suspicion[]> {
  const { storage } = engine;
  const row = await readRow(storage, address);
  if (!row) return [];
  const judged = judgeRow(entity, row);
  if (judged.is === 'entity' && entity.series) {
    const subject = { address, snapshot: judged.snapshot, only: undefined };
    const checked = await pMap(entity.features, ({ check }) => check?.entity?.(engine, entity, subject) ?? []);
    return checked.flat();
  }
  if (judged.is !== 'invalid') return [];
  const { reason, isReachable } = judged;
  const isOwn = row.properties.EntityType === entity.name;
  // No grant opens other partitions.
  if (!isReachable && !isOwn && (isMarked(row.properties) || !parseKey(entity.partition, row.partition))) return [];
  const repair = () => tryAction(storage, row, { kind: 'delete', row: row.row, etag: row.etag });
  return [
    {
      kind: 'invalid',
      of: entity.name,
      reason,
      ...address,
      losesValues: true,
      ...(isReachable || !isOwn ? {} : { repair }),
    },
  ];
}
