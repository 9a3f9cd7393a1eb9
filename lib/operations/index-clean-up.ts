import pMap from 'p-map';
import { RowkeyError } from '../base/errors.ts';
import { type Entity, withFeatures } from '../define/declaration/entity.ts';
import { type Finding, type Suspicion, toFinding } from '../define/declaration/finding.ts';
import { isCopy, isRowAt, projectionsOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { searchForeign } from '../engine/search-foreign.ts';
import { listFormOf } from '../engine/write/siblings.ts';
import { features } from '../features/features.ts';
import { dropTable } from '../storage/provision.ts';
import { deleteUnchanged, mostActions, type Row, scanTable, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { markCleanedUp, readFormerIndex } from './model-record.ts';
import { resourcesOf } from './resources.ts';
import { surviveRow } from './survive-row.ts';
import { limitTransactions, type VerifyPage, type VerifyPageOptions } from './verify.ts';
import { checkLeftOver } from './verify-index-rows.ts';

/**
 * Deletes the rows of an index that is no longer declared. If the index had its own table, the table is dropped in one
 * operation. Otherwise its copies are deleted in transactions, and its other rows one by one, like those of an index whose condition
 * never holds.
 */

/** The most rows that are checked at a time, and the most partitions whose copies are deleted at a time. */
const CONCURRENCY = 8;
/** How long a page searches a table for rows of other programs. The next one goes on. */
const SEARCH_MS = 20_000;

interface CleanUpOptions extends VerifyPageOptions {
  /** All declared entities: their tables are kept. */
  readonly entities: readonly Entity[];
}

/** Cleans up one page of rows. Throws `not-found` if the index is unknown or already cleaned up. */
export const cleanUpIndex = inPattern(
  'consistency check',
  async (
    engine: Engine,
    entity: Entity,
    name: string,
    { entities, position = { table: 0, left: 0 }, top, maxTransactions }: CleanUpOptions,
  ): Promise<VerifyPage> => {
    const shape = await readFormerIndex(engine, entity, name);
    if (!shape)
      throw new RowkeyError('not-found', `Former index "${name}" of ${entity.name} not found, or already cleaned up.`);
    const { table = entity.table } = shape;
    const isOwnTable = !resourcesOf(entities, engine.now()).tables.includes(table);
    // A page after the first one deletes rows of a table that has others.
    const isToSearch = isOwnTable && position.after === undefined;
    const others = isToSearch ? await searchForeign(engine, table, engine.now() + SEARCH_MS) : 'found';
    if (others === 'unfinished') return { checked: 0, findings: [], next: position, left: position.left };
    if (others === 'none') {
      await dropTable(engine.storage, table);
      await markCleanedUp(engine, entity, name);
      return { checked: 0, findings: [], next: undefined, left: 0 };
    }
    const { rows, more } = await scanTable(engine.storage, {
      table,
      after: position.after,
      limit: top,
      bound: ANY_ROWS,
    });
    const declared = features
      .map((pattern) => pattern.projections?.former?.(shape, name))
      .find((each) => each !== undefined);
    if (!declared) throw new Error(`No pattern has an index of the kind "${shape.kind}".`);
    const former: Entity = { ...entity, indexes: {}, totals: {}, ...declared };
    const without = withFeatures(former, features);
    const form = listFormOf(without);
    const isShared = (row: Row) => form?.has(row) ?? false;
    // The consistency check handles rows that a declared index may own. A list row does not name its entity.
    const mayOwn = (row: Row) => (isShared(row) ? entities : [entity]);
    const isOwned = (row: Row) => mayOwn(row).some((one) => isRowOfAny(one, row));
    const suspicionsOf = (row: Row) =>
      surviveRow<readonly Suspicion[]>(
        () => (isShared(row) ? wholeRow(engine, without, row) : checkLeftOver(engine, without, row)),
        (reason) => [{ kind: 'invalid', of: name, table, partition: row.partition, row: row.row, reason }],
      );
    const findings: Finding[] = [];
    const isOver = limitTransactions(maxTransactions);
    let checked = 0;
    while (checked < rows.length && !(checked > 0 && isOver())) {
      const some = takeRows(rows.slice(checked), (row) => !isOwned(row), {
        former: without,
        most: mostActions(engine.storage),
      });
      checked += some.taken;
      const { deleted, refused } = await deleteCopies(engine, some.copies);
      for (const { row, of } of deleted)
        findings.push({ kind: 'orphaned', of, table, partition: row.partition, row: row.row, repaired: true });
      const single = [...some.others, ...refused];
      const found = (await pMap(single, suspicionsOf, { concurrency: CONCURRENCY })).flat();
      for (const one of found) findings.push(await repairLeftOver(one));
      // A total that was the sum of the contributions which are deleted now.
      const isSum = (row: Row) => found.some(({ sum }) => sum?.partition === row.partition && sum.row === row.row);
      for (const row of single.filter(isSum))
        for (const one of await suspicionsOf(row)) findings.push(await repairLeftOver(one));
    }
    const left = position.left + findings.filter(({ repaired }) => !repaired).length;
    const last = more || checked < rows.length ? rows[checked - 1] : undefined;
    const next = last && { ...position, after: { partition: last.partition, row: last.row }, left };
    if (!next && left === 0) await markCleanedUp(engine, entity, name);
    return { checked, findings, next, left };
  },
);

async function repairLeftOver(suspicion: Suspicion): Promise<Finding> {
  const { repair } = suspicion;
  return toFinding(suspicion, repair !== undefined && (await surviveRow(repair, () => false)));
}

function isRowOfAny(entity: Entity, row: Row): boolean {
  const totals = Object.values(entity.totals).map(({ table, totalRow }) => ({ table, row: totalRow }));
  return [...projectionsOf(entity).map(({ at }) => at), ...totals].some((at) => isRowAt(at, row));
}

interface Copy {
  readonly row: Row;
  /** The name of the index. */
  readonly of: string;
}

/** Takes the rows of the next transactions, and those that are checked one by one. `taken` counts the rows of other indexes too. */
function takeRows(
  rows: readonly Row[],
  isLeftOver: (row: Row) => boolean,
  { former, most }: { readonly former: Entity; readonly most: number },
) {
  const copies: Copy[] = [];
  const others: Row[] = [];
  const partitions = new Set<string>();
  let taken = 0;
  for (const row of rows) {
    if (isLeftOver(row)) {
      if (copies.length === most || others.length === CONCURRENCY) break;
      const of = indexOfCopy(former, row);
      if (of === undefined) others.push(row);
      else if (partitions.size === CONCURRENCY && !partitions.has(row.partition)) break;
      else {
        copies.push({ row, of });
        partitions.add(row.partition);
      }
    }
    taken += 1;
  }
  return { copies, others, taken };
}

/** The former index of which a row is a copy that belongs to no other row. Undefined for a claim, a contribution or a list. */
function indexOfCopy(former: Entity, row: Row): string | undefined {
  const { EntityType, Claim } = row.properties;
  if (EntityType !== former.name || !isCopy(row) || Claim) return undefined;
  return projectionsOf(former).find(({ at, merge }) => !merge && isRowAt(at, row))?.name;
}

/**
 * Deletes copies: one transaction for each partition. Also returns the rows of the transactions that were refused, because another
 * process has deleted or changed one of them.
 */
async function deleteCopies({ storage }: Engine, copies: readonly Copy[]) {
  const deleted: Copy[] = [];
  const refused: Row[] = [];
  await pMap(
    Map.groupBy(copies, ({ row }) => row.partition).values(),
    async (some) => {
      const [first] = some;
      if (!first) return;
      const { table, partition } = first.row;
      const left = await deleteUnchanged(
        storage,
        { table, partition },
        some.map(({ row }) => row),
      );
      deleted.push(...some.filter(({ row }) => !left.includes(row)));
      refused.push(...left);
    },
    { concurrency: CONCURRENCY },
  );
  return { deleted, refused };
}

/** A list of a former index is deleted as a whole, with the blob that may have its members. */
async function wholeRow({ storage }: Engine, entity: Entity, row: Row): Promise<Suspicion[]> {
  const of = projectionsOf(entity).find(({ at }) => isRowAt(at, row))?.name;
  if (of === undefined) return [];
  const { table, partition, row: key, etag } = row;
  const repair = async () => {
    const form = listFormOf(entity);
    const action = { kind: 'delete', row: key, etag } as const;
    const isDone = await tryAction(storage, row, (await form?.write(storage, row, { action, former: row })) ?? action);
    if (isDone) await form?.drop(storage, row);
    return isDone;
  };
  return [{ kind: 'orphaned', of, table, partition, row: key, repair }];
}
