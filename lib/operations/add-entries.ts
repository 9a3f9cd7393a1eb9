import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { isOutcomeUnknown } from '../base/errors.ts';
import { toSnapshot } from '../define/codec/entity-codec.ts';
import { liveValues } from '../define/declaration/change.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { IndexEntry } from '../define/declaration/projection.ts';
import { indexEntriesOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { settleEntries } from '../engine/reconcile/reconcile.ts';
import type { Row } from '../storage/rows.ts';
import { keyOf, WRITE_CONCURRENCY, writeDerived } from './write-derived.ts';

interface Adding {
  /** Those of one index. */
  readonly only: string;
  /** Reads the rows of the entities again. */
  readonly readAgain: () => Promise<readonly Row[]>;
}

/**
 * Adds the missing entries of entities whose rows were just read. Safe beside writers, as a reconciler is: an entry is inserted or shared, never replaced,
 * each request is sent once, and then the entities are read again. The entries of those that have changed are settled one by one; those of all, if the
 * outcome of a request is unknown, once storage cannot execute it any more. Returns the rows of the others, if nothing else is stored in place of their entries.
 */
export async function addEntries(
  engine: Engine,
  entity: Entity,
  rows: readonly Row[],
  { only, readAgain }: Adding,
): Promise<ReadonlySet<Row>> {
  const wanted = rows.flatMap((row) => {
    const values = liveValues(toSnapshot(entity, row));
    const entries = indexEntriesOf(entity, values).filter(({ index }) => index === only);
    return values && entries.length > 0 ? [{ address: row, values, entries }] : [];
  });
  const isLeft = ({ index }: IndexEntry) => index !== only;
  let refused: ReadonlySet<(typeof wanted)[number]> | undefined;
  try {
    refused = await writeDerived(engine, entity, wanted, { isLeft, isInsert: true });
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    await sleep(engine.timing.claimForMs - engine.timing.commitWithinMs);
  }
  const etags = new Map((await readAgain()).map((row) => [keyOf(row), row.etag]));
  const changed = wanted.filter(({ address }) => !refused || etags.get(keyOf(address)) !== address.etag);
  await pMap(
    changed,
    ({ address, entries }) => settleEntries(engine, entity, address, { indexEntries: entries, isRepair: false }),
    { concurrency: WRITE_CONCURRENCY },
  );
  const done = wanted.filter((one) => !refused?.has(one) && !changed.includes(one));
  return new Set(done.map(({ address }) => address));
}
