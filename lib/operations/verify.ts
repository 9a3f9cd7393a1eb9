import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { z } from 'zod';
import { MAX_JSON_DEPTH } from '../base/json-value.ts';
import type { Values } from '../base/values.ts';
import { toSnapshot } from '../define/codec/entity-codec.ts';
import { parseFurtherRowKey } from '../define/codec/further-rows.ts';
import { type Entity, type Feature, formerOf, type VerifySubject } from '../define/declaration/entity.ts';
import type { Finding, Suspicion } from '../define/declaration/finding.ts';
import type { IndexEntry, Projection } from '../define/declaration/projection.ts';
import { parseKey } from '../define/keys/key-template.ts';
import {
  addressIfAny,
  CLAIM,
  indexEntriesOf,
  isConfirmed,
  isSibling,
  projectionsOf,
  shapesOf,
  tablesOf,
} from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { declarationOf, hasKeyOf, judgeRow, readJoinedRow } from '../engine/read/entity-rows.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { furtherTypes } from '../engine/reconcile/check-further-rows.ts';
import {
  isUpgradable,
  repairEntries,
  repairIntent,
  repairSibling,
  sameCopy,
  settleEntries,
} from '../engine/reconcile/reconcile.ts';
import { claim, hasLiveClaim, isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { listFormOf } from '../engine/write/siblings.ts';
import { blobsOf } from '../engine/write/stored-values.ts';
import { blobLength } from '../storage/blobs.ts';
import type { IsOwnRow } from '../storage/copy-rows.ts';
import { transactionsSoFar } from '../storage/cost.ts';
import { isMarked, MARKED_TYPES } from '../storage/row-marks.ts';
import { type Address, type Properties, type Row, readRow, scanTable, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { recordAlone, recordForeign } from './foreign-rows.ts';
import { createKnownFindings } from './known-findings.ts';
import { ownRowsOf } from './resources.ts';
import { surviveRow } from './survive-row.ts';
import { checkDerived } from './verify-derived.ts';
import { checkLeftOver, hasEntry, ownerIn, readOwner } from './verify-index-rows.ts';
import { deepFields, whyInvalid } from './why-invalid.ts';

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
    const tables = tablesToCheck(entity, only);
    const table = tables[position.table];
    if (table === undefined) return { checked: 0, findings: [], next: undefined, left: position.left };
    const { after } = position;
    const { rows, more } = await scanTable(engine.storage, { table, after, limit: top, bound: ANY_ROWS });
    const units = splitRows(engine, entity, { table, rows, after });
    const partitions = new Set<string>();
    const check = (unit: Unit) =>
      surviveRow<readonly Suspicion[]>(
        () => checkUnit(engine, entity, unit, { partitions, only }),
        (reason) => [{ kind: 'invalid', of: entity.name, ...addressIn(unit.row), reason }],
      );
    const look = async (unit: Unit) => ({ unit, suspicions: await check(unit) });
    let isOver = limitTransactions(maxTransactions);
    let checked: Awaited<ReturnType<typeof look>>[] = [];
    // One entity may need hundreds of lookups, so a page may end early. The next page continues after the last unit.
    let isEnd = false;
    do {
      const some = await takeFirst(units, UNITS_CONCURRENCY);
      checked.push(...(await pMap(some, look, { concurrency: UNITS_CONCURRENCY })));
      isEnd = some.length < UNITS_CONCURRENCY;
    } while (!isEnd && !isOver());
    let suspicious = checked.filter(({ suspicions }) => suspicions.length > 0).map(({ unit }) => unit);
    if (suspicious.length > 0) await sleep(patience);
    const known = createKnownFindings(position.known);
    const found: Finding[] = [];
    const sums = new Set<string>();
    isOver = limitTransactions(maxTransactions);
    let refused = new Map<Unit, RefusedRepairs>();
    for (let attempts = REPAIR_ATTEMPTS; suspicious.length > 0; attempts -= 1) {
      partitions.clear();
      const before = refused;
      refused = new Map();
      for (const [index, unit] of suspicious.entries()) {
        const isFirstTime = attempts === REPAIR_ATTEMPTS;
        if (isFirstTime && index > 0 && isOver()) {
          // The next page begins with this unit.
          checked = checked.slice(
            0,
            checked.findIndex((one) => one.unit === unit),
          );
          isEnd = false;
          break;
        }
        const suspicions = await check(unit);
        found.push(...mendedWith(before.get(unit), suspicions));
        const left: Suspicion[] = [];
        const again: Suspicion[] = [];
        const { length } = found;
        for (const suspicion of suspicions) {
          const { repair: mend, losesValues = false, kind } = suspicion;
          if (known.explains(suspicion)) continue;
          const isToRepair = repair === 'safe' ? !losesValues : repair;
          // A count is recounted from the rows beside it, so no other finding can explain it.
          const mayRepair = isToRepair && mend !== undefined && !(known.isFull && kind === 'wrong-total');
          if (mayRepair && (await surviveRow(mend, () => false))) {
            found.push(toFinding(suspicion, true));
            if (suspicion.sum) sums.add(textOf(suspicion.sum));
          } else if (mayRepair && attempts > 1 && !isOver()) again.push(suspicion);
          else left.push(suspicion);
        }
        // Checked once more, with all that is left of it.
        if (again.length > 0) {
          refused.set(unit, { suspicions: again, isChanged: found.length > length });
          continue;
        }
        for (const suspicion of left) known.add(suspicion);
        found.push(...left.map((suspicion) => toFinding(suspicion, false)));
      }
      // A sum may be wrong after its entries were repaired, and an entry after the copies in its entity were.
      const ofSums = checked.map(({ unit }) => unit).filter((unit) => sums.has(textOf(unit.row)) && !refused.has(unit));
      suspicious = [...refused.keys(), ...ofSums];
      sums.clear();
    }
    const left = position.left + found.filter(({ repaired }) => !repaired).length;
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

/** Leaves out what a finding is repaired with. */
export function toFinding(
  { repair: _, losesValues: __, member: ___, sum: ____, corrects: _____, ...found }: Suspicion,
  repaired: boolean,
): Finding {
  return { ...found, repaired };
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
}

async function checkUnit(
  engine: Engine,
  entity: Entity,
  { row, members }: Unit,
  { partitions, only }: Scope,
): Promise<Suspicion[]> {
  const { EntityType, SourceRow } = row.properties;
  const address = addressIn(row);
  if (entity.isWrittenByClients) return checkRefused(engine, entity, address);
  const isArchive = row.table === entity.archive?.table;
  const kind = isArchive ? entity.archive : entity;
  if (!kind) return [];
  const suspicions: Suspicion[] = [];
  if (EntityType === kind.name && SourceRow === undefined && row.table === kind.table)
    suspicions.push(...(await checkEntity(engine, kind, address, only)));
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

/** Finds index entries, copies and blobs of an entity that are missing or differ from it. */

/** Checks one entity: all of it, or only its entries in one index. */
async function checkEntity(
  engine: Engine,
  entity: Entity,
  address: Address,
  only: string | undefined,
): Promise<Suspicion[]> {
  const row = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) });
  const snapshot = toSnapshot(entity, row);
  if (!row || snapshot.state !== 'live') return [];
  // The move or archive that created the row finishes it. If that operation failed, an operator must act.
  const { MovingFrom, Leaving } = snapshot.system;
  if (MovingFrom || Leaving)
    return only === undefined ? [{ kind: 'unfinished', of: MovingFrom ? 'MovingFrom' : 'Leaving', ...address }] : [];
  // Nothing is repaired: the row would claim unique values and index entries, and a delete would lose data.
  const isElsewhere = (other: Entity) => !isDeepStrictEqual(addressIfAny(other, snapshot.values), address);
  const former = formerOf(entity);
  // A request for its key finds it, and moves it.
  if (former && isElsewhere(entity) && !isElsewhere(former) && (await engine.rekey?.phaseOf(engine, entity.name)))
    return [];
  if (!entity.series && isElsewhere(entity))
    return only === undefined ? [{ kind: 'unreachable', of: entity.name, ...address }] : [];
  // What follows from a wrong value is wrong, too, and what is stored may follow from the right one. A further row that is lost had the
  // fields that are absent now.
  const reason = whyInvalid(entity, row, snapshot.values);
  const invalid = { kind: 'invalid', of: entity.name, reason, ...address } as const;
  if (reason !== undefined && !entity.furtherRows) return [invalid];
  const found = only === undefined ? checkDepth(entity, address, snapshot.values) : [];
  for (const feature of entity.features)
    if (only === undefined || Object.hasOwn(shapesOf(entity, [feature]), only))
      found.push(...((await feature.check?.entity?.(engine, entity, { address, snapshot, only })) ?? []));
  if (found.some(({ kind, row: key }) => kind === 'unreadable' || parseFurtherRowKey(key))) return found;
  if (reason !== undefined) return [...found, invalid];
  const ofEntries = await checkProjections(engine, entity, { address, snapshot, only });
  const corrections = found.flatMap(({ corrects }) => corrects ?? []);
  if (corrections.length > 0 && ofEntries.some(({ kind }) => kind === 'stale')) {
    // An entry of stale copies may have the right ones already: it is stale if it differs from both.
    const values = corrections.reduce((all, correct) => correct(all), snapshot.values);
    const ofCorrected = await checkProjections(engine, entity, { address, snapshot: { ...snapshot, values }, only });
    const isWrong = (one: Suspicion) =>
      ofCorrected.some((other) => isDeepStrictEqual(toFinding(one, false), toFinding(other, false)));
    found.push(...ofEntries.filter((one) => one.kind !== 'stale' || isWrong(one)));
  } else found.push(...ofEntries);
  if (only === undefined) found.push(...(await checkBlobs(engine, entity, address, snapshot.values)));
  if (only === undefined) found.push(...(await checkDerived(engine, entity, { address, snapshot })));
  return found;
}

/** A value that was stored before there was a limit of its depth, or by other means. No write accepts it, and it may be the last one. */
function checkDepth({ name: of }: Entity, address: Address, values: Values): Suspicion[] {
  const field = deepFields(values)[0];
  const reason = `The field "${field}" is nested more than ${MAX_JSON_DEPTH} levels deep.`;
  return field === undefined ? [] : [{ kind: 'invalid', of, reason, ...address }];
}

/** Compares each row that follows from the entity with the stored one. */
async function checkProjections(engine: Engine, entity: Entity, subject: VerifySubject): Promise<Suspicion[]> {
  const { snapshot, only } = subject;
  const state = { entries: indexEntriesOf(entity, snapshot.values), isSettled: false };
  const suspicions: Suspicion[] = [];
  for (const projection of projectionsOf(entity).filter(({ name }) => only === undefined || only === name))
    for (const indexEntry of projection.rows(snapshot.values)) {
      const checked = { projection, indexEntry, state, isBuild: only !== undefined };
      const suspicion = await checkEntry(engine, entity, subject, checked);
      if (suspicion) suspicions.push(suspicion);
    }
  return suspicions;
}

interface CheckedEntry {
  readonly projection: Projection;
  readonly indexEntry: IndexEntry;
  readonly state: { readonly entries: readonly IndexEntry[]; isSettled: boolean };
  readonly isBuild: boolean;
}

async function checkEntry(
  engine: Engine,
  entity: Entity,
  subject: VerifySubject,
  checked: CheckedEntry,
): Promise<Suspicion | undefined> {
  const { address, snapshot, only } = subject;
  const { settle, merge, isPartial, ...projection } = checked.projection;
  const { index: of, table, partition, row, member } = checked.indexEntry;
  const found = await (merge?.list?.readAny ?? readRow)(engine.storage, checked.indexEntry);
  const properties = projection.properties?.(snapshot.values);
  const repair = () =>
    isSibling(checked.projection)
      ? repairInPartition(engine, subject, { ...checked, found, properties })
      : repairRemote(engine, entity, address, { ...checked, found });
  // A lost list is one finding for all its members.
  const sum = found && merge?.list?.isLost(found) ? { table, partition, row } : merge?.sumOf?.(checked.indexEntry);
  const common = { of, table, partition, row, member, sum } as const;
  // Nothing that another program wrote is replaced.
  if (found && !isMarked(found.properties)) return { kind: 'conflict', ...common };
  const isHeld = merge?.holds(found, { member, properties });
  if (merge?.list)
    return isHeld
      ? undefined
      : { kind: 'missing', ...common, repair, losesValues: found !== undefined && merge.list.isLost(found) };
  if (!found) return { kind: 'missing', ...common, repair };
  if (hasLiveClaim(found, { intent: repairIntent(address) }, engine)) return undefined;
  if (!isOwnedBy(found, address)) {
    const repairStolen = async () => (await releaseStolen(engine, entity, checked, found)) && repair();
    const isStolen = settle === 'claim' && !(await isEntryOfOwner(engine, entity, found, checked));
    return isStolen ? { kind: 'stale', ...common, repair: repairStolen } : { kind: 'conflict', ...common };
  }
  if (!properties) return undefined;
  const isSettled = settle !== 'claim' || isConfirmed(found);
  const isCurrent =
    isHeld ??
    (sameCopy(entity, found, properties) ||
      // A build of the index writes copies of earlier versions again.
      (only === undefined && isUpgradable(entity, found, { expected: properties, isPartial })));
  return isCurrent && isSettled ? undefined : { kind: 'stale', ...common, repair };
}

/** True if the entity that the row of a unique index names has its value, or if that entity cannot be read. */
async function isEntryOfOwner(
  engine: Engine,
  entity: Entity,
  found: Row,
  { projection, indexEntry }: CheckedEntry,
): Promise<boolean> {
  const values = await readOwner(engine, entity, ownerIn(entity, found));
  return values === 'unreadable' || (values !== undefined && hasEntry(projection, projection.rows(values), indexEntry));
}

/** Deletes the row of a unique index that names an entity without its value. False if the row, or that entity, has changed. */
async function releaseStolen(
  engine: Engine,
  entity: Entity,
  { indexEntry }: CheckedEntry,
  found: Row,
): Promise<boolean> {
  const owner = ownerIn(entity, found);
  await repairEntries(engine, entity, owner, indexEntry);
  const row = await readRow(engine.storage, indexEntry);
  return !row || !isOwnedBy(row, owner);
}

/** Writes a row under its ETag and that of the entity. A copy of another entity that came meanwhile is not overwritten. */
async function repairInPartition(
  engine: Engine,
  { address, snapshot }: VerifySubject,
  {
    projection: { merge },
    indexEntry,
    found,
    properties = {},
  }: CheckedEntry & { readonly found: Row | undefined; readonly properties: Properties | undefined },
): Promise<boolean> {
  const { row, member = '' } = indexEntry;
  const list = merge?.list;
  if (!list) {
    const action = found
      ? ({ kind: 'replace', row, properties, etag: found.etag } as const)
      : ({ kind: 'insert', row, properties } as const);
    return repairSibling(engine, address, snapshot, action);
  }
  const action = list.change(found, row, { add: [member], remove: [] });
  if (!action) return true;
  const isRepaired = await repairSibling(
    engine,
    address,
    snapshot,
    await list.write(engine.storage, indexEntry, { action, former: found }),
  );
  if (isRepaired && found) await list.drop(engine.storage, found);
  return isRepaired;
}

/**
 * Reconciles the entries as after any change; the missing row of a unique index is claimed first. One call repairs all entries of the
 * entity, and `state` avoids a second one for the next entry.
 */
async function repairRemote(
  engine: Engine,
  entity: Entity,
  address: Address,
  {
    projection: { settle, merge },
    indexEntry,
    state,
    isBuild,
    found,
  }: CheckedEntry & { readonly found: Row | undefined },
): Promise<boolean> {
  if (settle === 'claim') {
    // The reconciler leaves a row of another type as it is.
    if (found && ![entity.name, CLAIM].includes(String(found.properties.EntityType))) {
      const { row, etag } = found;
      const action = { kind: 'merge', row, properties: { EntityType: CLAIM }, etag } as const;
      if (!(await tryAction(engine.storage, indexEntry, action))) return false;
    }
    const outcome = await claim(engine, indexEntry, address, { intent: repairIntent(address) });
    if (typeof outcome !== 'object') return false;
    // The reconciler confirms the claim.
    return repairEntries(engine, entity, address, indexEntry);
  }
  if (merge?.list && !(await merge.list.restore(engine.storage, indexEntry))) return false;
  state.isSettled ||= await settleEntries(engine, entity, address, {
    indexEntries: state.entries,
    isRepair: !isBuild,
  });
  return state.isSettled;
}

/** A missing blob cannot be restored, so the finding has no repair. */
async function checkBlobs({ storage }: Engine, entity: Entity, address: Address, values: Values): Promise<Suspicion[]> {
  const suspicions: Suspicion[] = [];
  for (const blob of blobsOf(entity, values))
    if ((await blobLength(storage, blob)) === undefined)
      suspicions.push({ kind: 'lost-blob', of: blob.container, ...address });
  return suspicions;
}
