import pMap from 'p-map';
import { hasCode } from '../../base/errors.ts';
import { pick } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { expiryFields, hasExpired } from '../../define/declaration/expiry.ts';
import { indexEntriesOf, isContested, isCopy } from '../../define/places/index-entries.ts';
import { type Address, type Row, readRow } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { entityIn, readJoinedRow } from '../read/entity-rows.ts';
import type { EntityWrite } from './checks.ts';
import { type PlannedWrite, prepareDelete } from './entity-write.ts';

/**
 * Expired entities keep their key and their unique values in storage until a timer deletes them. A write that collides with one deletes it
 * first, in a transaction of its own, and is then planned again. So only a collision costs anything.
 */

const READS_CONCURRENCY = 16;

interface Collisions {
  /** The deletes of the expired entities whose key or unique value may be why the writes failed. */
  readonly deletes: readonly EntityWrite[];
  /** True if a key is free by now, because another request has deleted the expired entity. */
  readonly isFree: boolean;
}

/** Finds the expired entities with which the failed writes collide. */
export async function findExpired(
  engine: Engine,
  planned: readonly PlannedWrite[],
  failure: unknown,
): Promise<Collisions> {
  if (!hasCode(failure, 'duplicate-key', 'duplicate-value', 'partition-full')) return { deletes: [], isFree: false };
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
  const once = new Map(suspects.flat().map((suspect) => [toId(suspect.at), suspect]));
  const own = new Set(planned.map(({ address }) => toId(address)));
  const found = await pMap(
    once.values(),
    async ({ entity, at }) => {
      const row = await readJoinedRow(engine, entity, at, { fields: Object.keys(entity.columns) });
      const values = row && entityIn(entity, row)?.values;
      const isExpired = row !== undefined && values !== undefined && hasExpired(entity, values, engine.now());
      return {
        write: isExpired ? prepareDeleteOfExpired(engine, entity, row) : undefined,
        isFree: own.has(toId(at)) && hasCode(failure, 'duplicate-key') && toSnapshot(entity, row).state !== 'live',
      };
    },
    { concurrency: READS_CONCURRENCY },
  );
  return {
    deletes: found.flatMap(({ write }) => write ?? []),
    isFree: found.some(({ isFree }) => isFree),
  };
}

function toId({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

function ownerOf({ table }: Entity, { properties }: Row): Address {
  return { table, partition: String(properties.SourcePartition), row: String(properties.SourceRow) };
}

/** The delete of an entity in this row, which has not changed since the row was read. Undefined for another row. */
export function prepareDeleteOfExpired(engine: Engine, entity: Entity, found: Row): EntityWrite | undefined {
  // A row that a client wrote may be no entity.
  const current = entityIn(entity, found);
  if (!current) return undefined;
  const key = pick(current.values, entity.keyFields);
  return { ...prepareDelete(engine, entity, key, found, { ifMatch: found.etag }), isOfExpired: true };
}
