import type { Entity } from '../define/declaration/entity.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import { parseKey } from '../define/keys/key-template.ts';
import { indexEntriesOf, isSameEntry, remoteIndexesOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { readValues, repairEntries, repairIntent } from '../engine/reconcile/repair.ts';
import { hasLiveClaim } from '../engine/reconcile/unique-claim.ts';
import { siblingFormOf } from '../engine/write/siblings.ts';
import { type Row, readRow } from '../storage/rows.ts';

/** Finds copies, list members and claims that belong to no entity. */

/**
 * Checks an index row; `members` limits the check to these members of a list. The row is read before the entity and changed
 * under its ETag, so an entity that takes the row meanwhile keeps it.
 */
export async function checkLeftOver(
  engine: Engine,
  entity: Entity,
  scanned: Row,
  members?: readonly string[],
): Promise<readonly Suspicion[]> {
  const form = siblingFormOf(entity);
  const row = await (form ? form.readAny(engine.storage, scanned) : readRow(engine.storage, scanned));
  if (!row) return [];
  const verdicts: (readonly Suspicion[] | undefined)[] = [await checkRemoteRow(engine, entity, row)];
  for (const { check } of entity.features) verdicts.push(await check?.row?.(engine, entity, row, members));
  const found = verdicts.filter((verdict) => verdict !== undefined);
  // Two indexes of a table may have keys of the same form. The row is left over only if no entity needs it for either index.
  return found.find((suspicions) => suspicions.length === 0) ?? found[0] ?? [];
}

/** Checks a copy or a claim in another partition. Returns undefined for any other row. */
async function checkRemoteRow(engine: Engine, entity: Entity, found: Row): Promise<Suspicion[] | undefined> {
  const { SourcePartition, SourceRow, EntityType } = found.properties;
  if (SourceRow === undefined || (EntityType !== entity.name && EntityType !== 'claim')) return undefined;
  const { table, partition, row } = found;
  const candidates = remoteIndexesOf(entity).filter(
    (remote) => !remote.list && remote.table === table && parseKey(remote.row, row),
  );
  const [first] = candidates;
  if (!first) return undefined;
  const source = { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) };
  if (hasLiveClaim(found, { intent: repairIntent(source) }, engine)) return [];
  const entries = indexEntriesOf(entity, await readValues(engine, entity, source));
  const isWanted = candidates.some(({ name: index }) =>
    entries.some((indexEntry) => isSameEntry(indexEntry, { index, table, partition, row })),
  );
  if (isWanted) return [];
  const repair = () => repairEntries(engine, entity, source, { index: first.name, table, partition, row });
  return [{ kind: 'orphaned', of: first.name, table, partition, row, repair }];
}
