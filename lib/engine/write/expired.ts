import pMap from 'p-map';
import { hasCode } from '../../base/errors.ts';
import { pick } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { expiryFields, hasExpired } from '../../define/declaration/expiry.ts';
import { indexEntriesOf, isContested, isCopy } from '../../define/places/index-entries.ts';
import { type Address, type Row, readRow } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { entityIn, readJoinedRow } from '../read/entity-rows.ts';
import { type EntityWrite, type PlannedWrite, prepareDelete } from './entity-write.ts';

/**
 * Expired entities keep their key and their unique values in storage until a timer deletes them. A write that collides with one deletes it
 * first, in a transaction of its own, and is then planned again. So only a collision costs anything.
 */

const READS_CONCURRENCY = 16;

/** The deletes of the expired entities whose key or unique value may be why the writes failed. */
export async function prepareExpiredDeletes(
  engine: Engine,
  planned: readonly PlannedWrite[],
  failure: unknown,
): Promise<readonly EntityWrite[]> {
  if (!hasCode(failure, 'duplicate-key', 'duplicate-value')) return [];
  const suspects = await pMap(
    planned.filter(({ entity, after }) => after && expiryFields(entity).length > 0),
    async ({ entity, address, after }) => {
      const claimed = indexEntriesOf(entity, after).filter((entry) => isContested(entity, entry));
      const rows = await pMap(claimed, (entry) => readRow(engine.storage, entry), { concurrency: READS_CONCURRENCY });
      const owners = rows.flatMap((row) => (row && isCopy(row) ? [ownerOf(entity, row)] : []));
      return [address, ...owners].map((at) => ({ entity, at }));
    },
    { concurrency: READS_CONCURRENCY },
  );
  const once = new Map(suspects.flat().map((suspect) => [JSON.stringify(suspect.at), suspect]));
  const deletes = await pMap(once.values(), ({ entity, at }) => prepareDeleteIfExpired(engine, entity, at), {
    concurrency: READS_CONCURRENCY,
  });
  return deletes.filter((write) => write !== undefined);
}

function ownerOf({ table }: Entity, { properties }: Row): Address {
  return { table, partition: String(properties.SourcePartition), row: String(properties.SourceRow) };
}

/** The delete of an entity under the ETag of the row that shows that it has expired. Undefined if it has not. */
async function prepareDeleteIfExpired(
  engine: Engine,
  entity: Entity,
  address: Address,
): Promise<EntityWrite | undefined> {
  const found = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) });
  const current = found && entityIn(entity, found);
  if (!current || !hasExpired(entity, current.values, engine.now())) return undefined;
  return prepareDeleteOfExpired(engine, entity, found);
}

/** The delete of an entity in this row, which has not changed since the row was read. Undefined for another row. */
export function prepareDeleteOfExpired(engine: Engine, entity: Entity, found: Row): EntityWrite | undefined {
  // A row that a client wrote may be no entity.
  const current = entityIn(entity, found);
  if (!current) return undefined;
  const key = pick(current.values, entity.keyFields);
  return { ...prepareDelete(engine, entity, key, found, { ifMatch: found.etag }), isOfExpired: true };
}
