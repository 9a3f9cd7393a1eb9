import { type Entity, withArchives, withFeatures } from '../define/declaration/entity.ts';
import { tablesOf } from '../define/places/index-entries.ts';
import { POISON_TABLE } from '../engine/consume/poison.ts';
import { hasKeyOf } from '../engine/read/entity-rows.ts';
import { partNames } from '../engine/reconcile/queues.ts';
import { operations } from '../engine/write/operation.ts';
import { features } from '../features/features.ts';
import { ARRIVALS_CONTAINER } from '../features/large-entities/attachment.ts';
import { AUDIT_CONTAINER, PERIOD_ARCHIVES_CONTAINER } from '../storage/blob-owner.ts';
import type { IsOwnRow } from '../storage/copy-rows.ts';
import type { Resources } from '../storage/provision.ts';
import { BACKUP_CONTAINER } from '../storage/row-journal.ts';
import { isMarked } from '../storage/row-marks.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import { containersOf } from './collect-orphans.ts';

/** The engine's own entities, with their patterns. */
export const OWN_ENTITIES: readonly Entity[] = [withFeatures(operations, features)];

export interface AppResources extends Resources {
  /** The tables to which clients write with a grant. Those of periods are without their period. */
  readonly clientTables: readonly string[];
  readonly isOwnRow: IsOwnRow;
}

/**
 * Every table, queue and container that the entities need. With `now` (milliseconds), the tables of the coming periods are
 * included; a deployment template omits them, because it cannot name tables by date.
 */
export function resourcesOf(
  entities: readonly Entity[],
  now?: number,
  { queueParts = 1, backup }: { readonly queueParts?: number; readonly backup?: object | undefined } = {},
): AppResources {
  const tables = [...entities, ...OWN_ENTITIES].flatMap((entity) => tablesToCreate(entity, now));
  const queues = partNames(queueParts).flatMap((queue) => [queue, `${queue}-poison`]);
  return {
    tables: [...new Set([...tables, POISON_TABLE, SYSTEM_TABLE])],
    queues,
    containers: [
      ...containersOf(entities),
      ARRIVALS_CONTAINER,
      AUDIT_CONTAINER,
      ...(entities.some(({ period }) => period?.archiveTo) ? [PERIOD_ARCHIVES_CONTAINER] : []),
      ...(backup ? [BACKUP_CONTAINER] : []),
    ],
    clientTables: withArchives(entities).flatMap(({ isWrittenByClients, table }) =>
      isWrittenByClients ? [table] : [],
    ),
    isOwnRow: ownRowsOf(entities),
  };
}

/**
 * Returns a function that tells the rows of the app from those of other programs in its tables. A row of the app has the marks of the engine,
 * or the type of an entity. What clients write with a grant has neither, so there the keys decide. The engine's own tables have no other rows.
 */
export function ownRowsOf(entities: readonly Entity[]): IsOwnRow {
  const all = withArchives(entities);
  const types = new Set(all.map(({ name }) => name));
  const ofClients = Map.groupBy(
    all.filter(({ isWrittenByClients }) => isWrittenByClients),
    ({ table }) => table,
  );
  return (row) => {
    const { EntityType } = row.properties;
    if (row.table === SYSTEM_TABLE || row.table === POISON_TABLE || isMarked(row.properties)) return true;
    if (typeof EntityType === 'string' && types.has(EntityType)) return true;
    return ofClients.get(row.table)?.some((entity) => hasKeyOf(entity, row)) ?? false;
  };
}

function tablesToCreate(entity: Entity, now: number | undefined): string[] {
  const inPlace = entity.features.find(({ layout }) => layout?.periods)?.layout?.periods?.tables(entity, now);
  return inPlace ? [...inPlace, ...tablesOf(entity).slice(1)] : tablesOf(entity);
}
