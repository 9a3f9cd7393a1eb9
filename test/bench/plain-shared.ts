import { RestError, type TableClient } from '@azure/data-tables';
import type { GrowthWorld } from './growth-world.ts';

/**
 * Plain code for rows that many writers change: read, change, write under the ETag, and again if another writer was faster.
 */

const MAX_PROPERTY_LENGTH = 32_768;
/** A blob of a stale row is deleted, a row was created meanwhile, or its ETag is stale. */
const CONFLICTS: readonly unknown[] = [404, 409, 412];
let created = 0;

/** Repeats a change from its first read while it conflicts with another writer. */
async function untilWritten(change: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await change();
      return;
    } catch (error) {
      if (!(error instanceof RestError) || !CONFLICTS.includes(error.statusCode)) throw error;
    }
  }
}

interface PlainList {
  readonly players: string;
  readonly lists: string;
  readonly town: string;
}

/** Fills a list, and returns the operation that creates an entity and adds it to the list. */
export async function createPlainList(
  { plainTable, plainBlobs: blobs }: GrowthWorld,
  { players, lists, town }: PlainList,
  members: readonly string[],
): Promise<() => Promise<void>> {
  const list = plainTable(lists);
  const keys = { partitionKey: town, rowKey: 'ids' };
  const write = async (all: readonly string[], etag: string | undefined) => {
    const text = JSON.stringify(all);
    const isLong = text.length > MAX_PROPERTY_LENGTH;
    const blob = `${town}-${created++}`;
    if (isLong) await blobs.getBlockBlobClient(blob).upload(text, Buffer.byteLength(text));
    const row = { ...keys, ...(isLong ? { blob } : { members: text }) };
    if (etag) await list.updateEntity(row, 'Replace', { etag });
    else await list.createEntity(row);
  };
  await write(members, undefined);
  return async () => {
    const playerId = `p${String(created++).padStart(7, '0')}`;
    await plainTable(players).createEntity({
      partitionKey: 'PlainTeam',
      rowKey: playerId,
      team: 'PlainTeam',
      playerId,
      town,
    });
    await untilWritten(async () => {
      const row = await list.getEntity<{ members?: string; blob?: string }>(keys.partitionKey, keys.rowKey);
      const text = row.blob ? (await blobs.getBlobClient(row.blob).downloadToBuffer()).toString() : String(row.members);
      await write([...JSON.parse(text), `PlainTeam/${playerId}`].toSorted(), row.etag);
      if (row.blob) await blobs.deleteBlob(row.blob);
    });
  };
}

/** Adds 1 to a property of a row. */
export function plainIncrement(table: TableClient, partitionKey: string, rowKey: string): () => Promise<void> {
  return () =>
    untilWritten(async () => {
      const row = await table.getEntity<{ hour9?: number }>(partitionKey, rowKey).catch(() => undefined);
      const counted = { partitionKey, rowKey, hour9: (row?.hour9 ?? 0) + 1 };
      if (row) await table.updateEntity(counted, 'Merge', { etag: row.etag });
      else await table.createEntity(counted);
    });
}

/** Creates an entity of a partition, and counts it in a row of the partition. */
export function plainCounted(table: TableClient, partitionKey: string): () => Promise<void> {
  return async () => {
    const rowKey = `voter_p${created++}`;
    await untilWritten(async () => {
      const row = await table.getEntity<{ voterCount?: number }>(partitionKey, 'ward');
      const counted = { partitionKey, rowKey: 'ward', voterCount: (row.voterCount ?? 0) + 1 };
      await table.submitTransaction([
        ['create', { partitionKey, rowKey, ward: partitionKey }],
        ['update', counted, 'Merge', { etag: row.etag }],
      ]);
    });
  };
}
