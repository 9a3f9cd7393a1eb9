import type { Values } from '../base/values.ts';
import type { PlannedAction } from '../define/declaration/change.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Feature } from '../define/declaration/feature.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import { type IntraPartitionIndex, intraPartitionIndex } from '../define/declaration/indexes.ts';
import { liveValues } from '../define/declaration/snapshot.ts';
import { buildKey } from '../define/keys/key-template.ts';
import {
  arePartial,
  copyProperties,
  indexesOfKind,
  indexShape,
  isCopy,
  isIndexed,
  isRowOf,
  shapesOf,
} from '../define/places/index-entries.ts';
import { eachErrors } from '../define/validate/index-errors.ts';
import { isUpgradable, sameCopy } from '../engine/reconcile/reconcile.ts';
import { readValues, repairSibling } from '../engine/reconcile/repair.ts';
import { isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { type Action, readRow, tryAction } from '../storage/rows.ts';

/**
 * Intra-partition secondary index pattern: a copy of the entity in the same partition under another row key. Both change in
 * one entity group transaction.
 */
export const intraPartitionIndexes: Feature<Entity> = {
  name: 'intra-partition secondary index',
  isUsed: (entity) => indexesOf(entity).length > 0,
  write: {
    plan(entity, changes, { actions }) {
      for (const { before, after } of changes)
        for (const [, index] of indexesOf(entity))
          actions.push(...copyActions(entity, index, { before: liveValues(before), after }));
    },
  },
  *validate(entity) {
    for (const [name, index] of indexesOf(entity)) yield* eachErrors(name, index);
  },
  projections: {
    rowKeys: (entity) => indexesOf(entity).map(([name, { row }]) => ({ what: `the rows of its index "${name}"`, row })),
    shapes: (entity) => shapesOf(indexesOf(entity), (index) => ({ ...indexShape(index), copies: index.copies })),
    former: ({ kind, row }, name) =>
      kind === 'intra-partition' ? { indexes: { [name]: intraPartitionIndex({ row, when: () => false }) } } : undefined,
  },
  check: {
    async entity(engine, entity, { address, snapshot, only }) {
      const suspicions: Suspicion[] = [];
      for (const [of, index] of indexesOf(entity)) {
        if (!isIndexed(index, snapshot.values) || (only !== undefined && only !== of)) continue;
        const row = buildKey(index.row, snapshot.values);
        const there = { ...address, row };
        const found = await readRow(engine.storage, there);
        const properties = copyProperties(entity, snapshot.values, index.copies);
        if (found && sameCopy(entity, found, properties)) continue;
        const isPartial = arePartial(entity, index.copies);
        // A build of the index writes copies of earlier versions again.
        if (found && only === undefined && isUpgradable(entity, found, { expected: properties, isPartial })) continue;
        if (found && !isOwnedBy(found, address)) {
          suspicions.push({ kind: 'conflict', of, ...there });
          continue;
        }
        // A copy of another entity that came meanwhile is not overwritten.
        const action: Action = found
          ? { kind: 'replace', row, properties, etag: found.etag }
          : { kind: 'insert', row, properties };
        const repair = () => repairSibling(engine, address, snapshot, action);
        suspicions.push({ kind: found ? 'stale' : 'missing', of, ...there, repair });
      }
      return suspicions;
    },
    async row(engine, entity, found) {
      const { table, partition, row, etag, properties } = found;
      const candidates = indexesOf(entity).filter(([, index]) => isRowOf(entity, index, found));
      const [first] = candidates;
      if (!first || properties.EntityType !== entity.name || !isCopy(found)) return undefined;
      const source = { table, partition: String(properties.SourcePartition), row: String(properties.SourceRow) };
      const values = await readValues(engine, entity, source);
      if (candidates.some(([, index]) => isIndexed(index, values) && buildKey(index.row, values) === row)) return [];
      const repair = () => tryAction(engine.storage, found, { kind: 'delete', row, etag });
      return [{ kind: 'orphaned', of: first[0], table, partition, row, repair }];
    },
  },
};

const indexesOf = (entity: Entity) => indexesOfKind(entity, 'intra-partition');

function copyActions(
  entity: Entity,
  index: IntraPartitionIndex,
  { before, after }: { readonly before: Values | undefined; readonly after: Values | undefined },
): PlannedAction[] {
  const from = isIndexed(index, before) ? buildKey(index.row, before) : undefined;
  const to = isIndexed(index, after)
    ? { row: buildKey(index.row, after), properties: copyProperties(entity, after, index.copies) }
    : undefined;
  const part = { of: 'copy', fields: index.row.fields } as const;
  const actions: PlannedAction[] = [];
  // A new copy is inserted, so that another entity's copy of the same key is a conflict and never overwritten.
  if (to) actions.push({ action: { kind: from === to.row ? 'upsert' : 'insert', ...to }, part });
  if (from !== undefined && from !== to?.row) actions.push({ action: { kind: 'delete', row: from }, part });
  return actions;
}
