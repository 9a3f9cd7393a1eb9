import { isDeepStrictEqual } from 'node:util';
import type { WalkWorld } from '../../local/walk/walk-world.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { storageRows } from '../kit/storage.ts';

export type RawRow = Record<string, unknown> & { readonly partitionKey: string; readonly rowKey: string };
export interface StoredRow {
  readonly table: string;
  readonly raw: RawRow;
}

/** All rows of the tables of these entities, with the types of their properties: the SDK would read 5.0, a Double, as an Int32. */
export async function readRows({ engine }: WalkWorld, entities: readonly Entity[]): Promise<StoredRow[]> {
  const tables = [...new Set(entities.flatMap((entity) => (entity.period ? [] : definePlaces.tablesOf(entity))))];
  const scans = await Promise.all(
    tables.map((table) =>
      storageRows.scanTable(engine.storage, { table, limit: Number.POSITIVE_INFINITY, isTyped: true }),
    ),
  );
  return scans.flatMap(({ rows }) =>
    rows.map(({ table, partition, row, properties }) => ({
      table,
      raw: { ...properties, partitionKey: partition, rowKey: row },
    })),
  );
}

const idOf = ({ table, raw }: StoredRow) => JSON.stringify([table, raw.partitionKey, raw.rowKey]);

/** Makes the rows what they were. */
export async function restore(
  world: WalkWorld,
  entities: readonly Entity[],
  before: readonly StoredRow[],
): Promise<void> {
  const now = new Map((await readRows(world, entities)).map((row) => [idOf(row), row]));
  for (const row of before) {
    const found = now.get(idOf(row));
    now.delete(idOf(row));
    if (!isDeepStrictEqual(found, row)) await world.engine.storage.table(row.table).upsertEntity(row.raw, 'Replace');
  }
  for (const { table, raw } of now.values())
    await world.engine.storage.table(table).deleteEntity(raw.partitionKey, raw.rowKey);
}

/** The value of a property that may have its type. */
export const textIn = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'value' in value ? value.value : value;
