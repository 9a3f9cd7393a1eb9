import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import type { Address, Row } from '../storage/rows.ts';
import { scanTable } from '../storage/rows.ts';
import { checkCounts, checkEntity } from './drift-of-entities.ts';
import { checkLeftOver } from './drift-of-index-rows.ts';
import type { Engine } from './engine.ts';
import type { Entity } from './entity.ts';
import { PLACEHOLDER } from './entity-codec.ts';
import { elsewhereTables } from './places.ts';

/**
 * Drift audit: walks the tables of an entity and compares every index, copy, list, count and blob with the entities, from
 * both sides: what an entity wants and what is there. It is for what no protocol can prevent: a row that was changed by
 * hand, a process that was stalled past its hold, a restored table, an index that is new. What it suspects it looks at
 * again a while later, as queues may just be behind; what it repairs it repairs under ETags, beside any writer.
 */

export interface Finding {
  readonly what: 'missing' | 'wrong' | 'left over' | 'taken' | 'count' | 'copied fields' | 'lost blob' | 'on its way';
  /** The index, field or attachment that it is about. */
  readonly of: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  readonly repaired: boolean;
}

/** Something that looks wrong, and how it is put right; without `repair` nobody can. */
export interface Suspicion extends Omit<Finding, 'repaired'> {
  readonly repair?: () => Promise<boolean>;
}

/** Which table of the entity is walked, and the last row that was looked at. */
export interface AuditPosition {
  readonly table: number;
  readonly after?: { readonly partition: string; readonly row: string };
}

export interface AuditOptions {
  readonly position?: AuditPosition | undefined;
  /** How many rows. */
  readonly top: number;
  readonly repair: boolean;
  /** Of this index alone, as it is built. */
  readonly only?: string | undefined;
  /** Milliseconds after which what looks wrong is looked at again. */
  readonly patience?: number;
}

export interface AuditPage {
  readonly looked: number;
  readonly findings: readonly Finding[];
  readonly next: AuditPosition | undefined;
}

const ROWS_AT_ONCE = 8;
/** Queues are looked at every second at least. */
const PATIENCE_MS = 2_500;

/** Whether there is anything about an entity that could disagree with it. */
export function isAudited({
  perDay,
  series,
  indexes,
  countedBy,
  denormalized,
  large,
  attachments,
  archive,
}: Entity): boolean {
  const others = [Object.keys(indexes), countedBy, denormalized, large, Object.keys(attachments)];
  return !perDay && !series && (archive !== undefined || others.some(({ length }) => length > 0));
}

/** Looks at some rows. Throws as reads and writes do; then the same page may be asked for again. */
export async function auditPage(engine: Engine, entity: Entity, options: AuditOptions): Promise<AuditPage> {
  const { position = { table: 0 }, top, repair, only, patience = PATIENCE_MS } = options;
  const tables = only ? [entity.table] : tablesOf(entity);
  const table = tables[position.table];
  if (table === undefined) return { looked: 0, findings: [], next: undefined };
  const { rows, more } = await scanTable(engine.storage, { table, after: position.after, limit: top });
  const partitions = new Set<string>();
  const look = async (row: Row) => ({ row, suspicions: await checkRow(engine, entity, row, { partitions, only }) });
  const looked = await pMap(rows, look, { concurrency: ROWS_AT_ONCE });
  const suspicious = looked.filter(({ suspicions }) => suspicions.length > 0).map(({ row }) => row);
  const findings: Finding[] = [];
  if (suspicious.length > 0) {
    await sleep(patience);
    partitions.clear();
    for (const row of suspicious)
      for (const { repair: mend, ...found } of await checkRow(engine, entity, row, { partitions, only }))
        findings.push({ ...found, repaired: repair && mend !== undefined && (await mend()) });
  }
  const last = rows.at(-1);
  const next =
    more && last
      ? { table: position.table, after: { partition: last.partition, row: last.row } }
      : { table: position.table + 1 };
  return { looked: rows.length, findings, next: next.table < tables.length ? next : undefined };
}

/** Its own, where copies and lists of its partitions are, too; then those of its indexes elsewhere, and its archive. */
function tablesOf(entity: Entity): string[] {
  return [...new Set([entity.table, ...elsewhereTables(entity), ...(entity.archive ? [entity.archive.table] : [])])];
}

interface Scope {
  /** Those whose counts have been looked at. */
  readonly partitions: Set<string>;
  readonly only: string | undefined;
}

async function checkRow(engine: Engine, entity: Entity, row: Row, { partitions, only }: Scope): Promise<Suspicion[]> {
  const { EntityType, SourceRow } = row.properties;
  const address: Address = { table: row.table, partition: row.partition, row: row.row };
  const isArchive = row.table === entity.archive?.table;
  const kind = isArchive ? entity.archive : entity;
  if (!kind) return [];
  const suspicions: Suspicion[] = [];
  if (EntityType === kind.name && SourceRow === undefined && row.table === kind.table)
    suspicions.push(...(await checkEntity(engine, kind, address, { only, work: randomUUID() })));
  else if (!isArchive && only === undefined) suspicions.push(...(await checkLeftOver(engine, entity, row)));
  const isCounted = EntityType === entity.name || EntityType === PLACEHOLDER || countersOf(entity).includes(EntityType);
  if (isCounted && row.table === entity.table && only === undefined && !partitions.has(row.partition)) {
    partitions.add(row.partition);
    suspicions.push(...(await checkCounts(engine, entity, row)));
  }
  return suspicions;
}

function countersOf({ countedBy }: Entity): unknown[] {
  return countedBy.map(({ target }) => target().name);
}
