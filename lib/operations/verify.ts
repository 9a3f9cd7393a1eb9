import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { z } from 'zod';
import { type Entity, isWrittenByClients } from '../define/entity.ts';
import type { Finding, Suspicion } from '../define/finding.ts';
import { remoteTables } from '../define/index-entries.ts';
import type { Pattern } from '../define/pattern.ts';
import type { Engine } from '../engine/engine.ts';
import { judgeRow } from '../engine/read/judge-row.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { siblingFormOf } from '../engine/write/siblings.ts';
import { transactionsSoFar } from '../storage/cost.ts';
import { type Address, type Row, readRow, scanTable, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { checkEntity } from './verify-entity.ts';
import { checkLeftOver } from './verify-index-rows.ts';

/**
 * Consistency check: walks the tables of an entity and compares every index, copy, list, count and blob with the entities, from
 * both sides: what an entity wants and what is there. It is for what no protocol can prevent: a row that was changed by
 * hand, a process that was stalled past its hold, a restored table, an index that is new. What it suspects it looks at
 * again a while later, as queues may just be behind; what it repairs it repairs under ETags, beside any writer.
 */

/**
 * Which table of the entity is walked, the last row that was looked at, and how many findings were left as they were. Of a
 * list with many members, `member` is the last one that was looked at.
 */
export const VerifyPosition = z.object({
  table: z.int(),
  after: z.object({ partition: z.string(), row: z.string(), member: z.string().optional() }).optional(),
  left: z.int().default(0),
});
export type VerifyPosition = z.infer<typeof VerifyPosition>;

export interface VerifyOptions {
  readonly position?: VerifyPosition | undefined;
  /** How many rows. */
  readonly top: number;
  readonly repair: boolean;
  /** Of this index alone, as it is built. */
  readonly only?: string | undefined;
  /** Milliseconds after which what looks wrong is looked at again. */
  readonly patience?: number;
  /** No more is begun once looking has taken so many storage transactions, nor once repairing has. */
  readonly maxTransactions?: number;
}

export interface VerifyPage {
  readonly looked: number;
  readonly findings: readonly Finding[];
  readonly next: VerifyPosition | undefined;
  /** How many findings of this page and of those before it were not repaired. */
  readonly left: number;
}

const UNITS_CONCURRENCY = 8;
/** Each member of a list is a lookup, and a list may have any number. */
const MEMBERS_IN_UNIT = 16;
/** Of one page, and as many again for looking at what is suspicious once more and repairing it. */
export const PAGE_TRANSACTIONS = 1_000;
/** Queues are looked at every second at least. */
const PATIENCE_MS = 2_500;
/** A repair is refused where a writer was first, and then what that one left is looked at. */
const ATTEMPTS_AT_REPAIR = 5;

/** Whether there is anything about an entity that could disagree with it, or a client may have written it. */
export function canVerify(entity: Entity): boolean {
  if (isWrittenByClients(entity)) return !entity.period;
  const isVerified = (pattern: Pattern) =>
    Boolean(pattern.verify || pattern.verifyPartition || pattern.remoteIndexes || pattern.blobs);
  return !entity.period && (entity.archive !== undefined || entity.patterns.some(isVerified));
}

/** Looks at some rows. Throws as reads and writes do; then the same page may be asked for again. */
export const verifyPage = inPattern(
  'consistency check',
  async (engine: Engine, entity: Entity, options: VerifyOptions): Promise<VerifyPage> => {
    const { position = { table: 0, left: 0 }, top, repair, only, patience = PATIENCE_MS } = options;
    const { maxTransactions = PAGE_TRANSACTIONS } = options;
    const tables = only ? [entity.table] : tablesOf(entity);
    const table = tables[position.table];
    if (table === undefined) return { looked: 0, findings: [], next: undefined, left: position.left };
    const { after } = position;
    const { rows, more } = await scanTable(engine.storage, { table, after, limit: top, bound: ANY_ROWS });
    const units = unitsOf(engine, entity, { table, rows, after });
    const partitions = new Set<string>();
    const check = (unit: Unit) => checkUnit(engine, entity, unit, { partitions, only });
    const look = async (unit: Unit) => ({ unit, suspicions: await check(unit) });
    let isOver = bounded(maxTransactions);
    let looked: Awaited<ReturnType<typeof look>>[] = [];
    // One entity may need hundreds of lookups: a page ends early, and the next one goes on after the last unit.
    let isEnd = false;
    do {
      const some = await firstOf(units, UNITS_CONCURRENCY);
      looked.push(...(await pMap(some, look, { concurrency: UNITS_CONCURRENCY })));
      isEnd = some.length < UNITS_CONCURRENCY;
    } while (!isEnd && !isOver());
    let suspicious = looked.filter(({ suspicions }) => suspicions.length > 0).map(({ unit }) => unit);
    if (suspicious.length > 0) await sleep(patience);
    const findings: Finding[] = [];
    isOver = bounded(maxTransactions);
    for (let attempts = ATTEMPTS_AT_REPAIR; suspicious.length > 0; attempts -= 1) {
      partitions.clear();
      const refused = new Set<Unit>();
      for (const [index, unit] of suspicious.entries()) {
        const isFirstTime = attempts === ATTEMPTS_AT_REPAIR;
        if (isFirstTime && index > 0 && isOver()) {
          // The next page begins with it.
          looked = looked.slice(
            0,
            looked.findIndex((one) => one.unit === unit),
          );
          isEnd = false;
          break;
        }
        for (const { repair: mend, ...found } of await check(unit)) {
          const repaired = repair && mend !== undefined && (await mend());
          if (repair && mend && !repaired && attempts > 1 && !isOver()) refused.add(unit);
          else findings.push({ ...found, repaired });
        }
      }
      suspicious = [...refused];
    }
    const left = position.left + findings.filter(({ repaired }) => !repaired).length;
    const page = { looked: looked.filter(({ unit }) => unit.isWhole).length, findings, left };
    const last = more || !isEnd ? looked.at(-1)?.unit : undefined;
    if (last) {
      const { row, isWhole, members } = last;
      const member = isWhole ? undefined : members?.at(-1);
      return { ...page, next: { ...position, after: { partition: row.partition, row: row.row, member }, left } };
    }
    const isLast = position.table + 1 === tables.length;
    return { ...page, next: isLast ? undefined : { table: position.table + 1, left } };
  },
);

/** Answers whether the storage transactions from now on are as many as they may be. */
export function bounded(maxTransactions: number): () => boolean {
  const before = transactionsSoFar();
  return () => transactionsSoFar() - before >= maxTransactions;
}

/** What is looked at and repaired as one: a row, or some of the members of a list. */
interface Unit {
  readonly row: Row;
  readonly members?: readonly string[];
  /** Whether the row ends with it. */
  readonly isWhole: boolean;
}

/** The rows of a page one after the other. A row with many members comes in parts; the first may be left of the page before. */
async function* unitsOf(
  { storage }: Engine,
  entity: Entity,
  { table, rows, after }: { table: string; rows: readonly Row[]; after: VerifyPosition['after'] },
): AsyncGenerator<Unit, undefined> {
  const form = siblingFormOf(entity);
  if (form && after?.member !== undefined) {
    const row = await form.readAny(storage, { table, ...after });
    if (row) yield* partsOf(row, form.members(row), after.member);
  }
  for (const found of rows) {
    const row = form ? await form.complete(storage, found) : found;
    const members = row && form ? form.members(row) : [];
    if (row && members.length > MEMBERS_IN_UNIT) yield* partsOf(row, members, '');
    else yield { row: found, isWhole: true };
  }
}

function* partsOf(row: Row, all: readonly string[], after: string): Generator<Unit> {
  const members = all.filter((member) => member > after).sort();
  for (let at = 0; at < members.length; at += MEMBERS_IN_UNIT) {
    const end = at + MEMBERS_IN_UNIT;
    yield { row, members: members.slice(at, end), isWhole: end >= members.length };
  }
}

async function firstOf<Item>(items: AsyncGenerator<Item, undefined>, count: number): Promise<Item[]> {
  const first: Item[] = [];
  for (; first.length < count; ) {
    const { value, done } = await items.next();
    if (done) break;
    first.push(value);
  }
  return first;
}

/** Its own, where copies and lists of its partitions are, too; then those of its indexes elsewhere, and its archive. */
function tablesOf(entity: Entity): string[] {
  return [...new Set([entity.table, ...remoteTables(entity), ...(entity.archive ? [entity.archive.table] : [])])];
}

interface Scope {
  /** Patterns and partitions that are checked already. */
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
  const address: Address = { table: row.table, partition: row.partition, row: row.row };
  if (isWrittenByClients(entity)) return checkRefused(engine, entity, address);
  const isArchive = row.table === entity.archive?.table;
  const kind = isArchive ? entity.archive : entity;
  if (!kind) return [];
  const suspicions: Suspicion[] = [];
  if (EntityType === kind.name && SourceRow === undefined && row.table === kind.table)
    suspicions.push(...(await checkEntity(engine, kind, address, only)));
  else if (!isArchive && only === undefined) suspicions.push(...(await checkLeftOver(engine, entity, row, members)));
  if (row.table !== entity.table || only !== undefined) return suspicions;
  for (const { name, verifyPartition } of entity.patterns) {
    const once = JSON.stringify([name, row.partition]);
    if (!verifyPartition?.types(entity).includes(String(EntityType)) || partitions.has(once)) continue;
    partitions.add(once);
    suspicions.push(...(await verifyPartition.check(engine, entity, row)));
  }
  return suspicions;
}

/** A row that a client wrote and no reader is shown. Its routes delete it, or, where no route leads to it, the repair. */
async function checkRefused({ storage }: Engine, entity: Entity, address: Address): Promise<Suspicion[]> {
  const row = await readRow(storage, address);
  if (!row) return [];
  const judged = judgeRow(entity, row);
  if (judged.is !== 'refused') return [];
  const { reason, isReachable } = judged;
  const repair = () => tryAction(storage, row, { kind: 'delete', row: row.row, etag: row.etag });
  return [{ what: 'refused', of: entity.name, reason, ...address, ...(isReachable ? {} : { repair }) }];
}
