import { type Entity, isWrittenByClients } from '../define/declaration/entity.ts';
import type { Engine } from '../engine/engine.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { scanTable } from '../storage/rows.ts';

/**
 * Finds rows that another key of an entity would hide, in the tables of its former declaration: `live` ones, which can be purged, or
 * only `unlisted` ones, which no request lists and no index has: those of an archive, of periods and of a series.
 */
export async function findRows(
  { storage }: Engine,
  entity: Entity,
  { table, archive }: { readonly table: string; readonly archive?: string | undefined },
): Promise<'live' | 'unlisted' | 'none'> {
  if (entity.period || entity.series) return 'unlisted';
  const has = async (name: string, type: string | undefined) => {
    const { rows } = await unlessTableMissing(scanTable(storage, { table: name, type, limit: 1 }), { rows: [] });
    return rows.length > 0;
  };
  // Clients may write any type.
  if (await has(table, isWrittenByClients(entity) ? undefined : entity.name)) return 'live';
  return archive !== undefined && (await has(archive, undefined)) ? 'unlisted' : 'none';
}
