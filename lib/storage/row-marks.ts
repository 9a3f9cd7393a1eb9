import { storageCall } from './errors.ts';
import { isFenceRow } from './fence-rows.ts';
import type { Address, Properties } from './row-query.ts';
import type { Storage } from './storage.ts';

/**
 * Which rows Rowkey wrote. Another program may have rows in the same table, and no command over many rows touches them. Rows that clients
 * write with a grant need no mark: their keys tell them, see `isOwnRow` of `resourcesOf`.
 */

/** The `EntityType` of rows that have none of the properties below. */
export const MARKED_TYPES: readonly string[] = ['list', 'total', 'placeholder', 'tombstone'];
/** Every other row has a type and one of these. */
const MARKS = ['WriteId', 'EntityVersion', 'SourceRow'];

/** True if Rowkey wrote a row with these properties, of any model. `properties` are all of the row. */
export function isMarked({ EntityType, ...properties }: Properties): boolean {
  if (typeof EntityType !== 'string') return false;
  return MARKED_TYPES.includes(EntityType) || MARKS.some((name) => (properties[name] ?? undefined) !== undefined);
}

/** No comparison holds for a property that is missing. */
const UNMARKED = [
  ...MARKED_TYPES.map((type) => `not (EntityType eq '${type}')`),
  "not (EntityType gt '' and (WriteId ge '' or EntityVersion ge 0 or SourceRow ge ''))",
].join(' and ');

type Unmarked = Address & { readonly properties: Properties };

interface UnmarkedPage {
  readonly rows: readonly Unmarked[];
  /** Where the next page begins; undefined at the end of the table. */
  readonly next: string | undefined;
}

/** One page of the rows of a table that are not marked: one storage transaction, which may find nothing in a large table. */
export async function readUnmarked(
  account: Storage,
  table: string,
  { limit, from }: { readonly limit: number; readonly from?: string | undefined },
): Promise<UnmarkedPage> {
  const client = account.table(table);
  const settings = { maxPageSize: limit, ...(from === undefined ? {} : { continuationToken: from }) };
  const pages = client.listEntities({ queryOptions: { filter: UNMARKED } }).byPage(settings);
  const { value: page } = await storageCall(pages.next(), client.tableName);
  const rows = [...(page ?? [])].map(({ partitionKey = '', rowKey = '', etag: _, timestamp: __, ...properties }) => ({
    table,
    partition: partitionKey,
    row: rowKey,
    properties,
  }));
  // The fence of a move has no properties, and stays until the slots are cleaned up.
  const unmarked = rows.filter((row) => !isMarked(row.properties) && !isFenceRow(row));
  return { rows: unmarked, next: page?.continuationToken };
}
