import { isDeepStrictEqual } from 'node:util';
import type { WalkWorld } from '../../local/walk/walk-world.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces, type Entity } from '../kit/define.ts';

export type RawRow = Record<string, unknown> & { readonly partitionKey: string; readonly rowKey: string };
export interface StoredRow {
  readonly table: string;
  readonly raw: RawRow;
}

/** All rows of the tables of these entities. */
export async function readRows({ engine }: WalkWorld, entities: readonly Entity[]): Promise<StoredRow[]> {
  const tables = [...new Set(entities.flatMap((entity) => (entity.period ? [] : definePlaces.tablesOf(entity))))];
  const rows = await Promise.all(
    tables.map(async (table) => {
      const raw = await Array.fromAsync(
        engine.storage.table(table).listEntities<Record<string, unknown>>({ disableTypeConversion: true }),
      );
      return raw.map(({ etag: _, timestamp: __, ...one }) => ({
        table,
        raw: baseValues.mapValues(one, toWritable) as RawRow,
      }));
    }),
  );
  return rows.flat();
}

/** The SDK reads a Boolean as a text with its type, and writes none such. */
function toWritable(property: unknown): unknown {
  const isBoolean =
    typeof property === 'object' && property !== null && 'type' in property && property.type === 'Boolean';
  return isBoolean ? String(textIn(property)) === 'true' : property;
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

/** The value of a property that the SDK returns with its type. */
export const textIn = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'value' in value ? value.value : value;
