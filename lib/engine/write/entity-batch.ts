import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import type { Change } from '../../define/change.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { keptFields } from '../../define/codec/kept-fields.ts';
import { liveValues } from '../../define/codec/snapshot.ts';
import type { Entity } from '../../define/entity.ts';
import { addressOf } from '../../define/keys/index-entries.ts';
import { validate } from '../../define/validate/validation.ts';
import { pick, type Values } from '../../define/values.ts';
import { busy, entityError, RowkeyError } from '../../errors.ts';
import type { Engine } from '../engine.ts';
import { readEntityRow } from '../period-tables.ts';
import { judgeRow } from '../read/judge-row.ts';
import { EntityChanged } from './conflict.ts';
import { checkWritable } from './entity-store.ts';
import { commit } from './eventual-transaction.ts';
import { toStored } from './stored-values.ts';

/** Writes many entities, for an import. Entities of one partition share entity group transactions. */

export type BatchOutcome = 'created' | 'replaced' | 'unchanged' | RowkeyError;

const PARTITIONS_CONCURRENCY = 4;
const READS_CONCURRENCY = 16;
/** An entity with a copy and a list has three rows. A batch that does not fit into one transaction is halved. */
const ENTITIES_CONCURRENCY = 33;
const MAX_ATTEMPTS = 8;

interface Item {
  readonly index: number;
  readonly values: Values;
}

/**
 * Creates or replaces each entity. Returns an outcome or error for each, in order; a failed entity does not stop the
 * others. Throws `storage-unavailable` for the whole batch, which may then be repeated.
 */
export async function putEntities(engine: Engine, entity: Entity, inputs: readonly unknown[]): Promise<BatchOutcome[]> {
  const outcomes = new Map<number, BatchOutcome>();
  const partitions = new Map<string, Item[]>();
  const seen = new Map<string, Item>();
  const repeats = new Map<number, Item>();
  for (const [index, input] of inputs.entries()) {
    try {
      const values = validate(entity, input);
      checkWritable(entity, values, engine.now());
      const { table, partition, row } = addressOf(entity, values);
      const key = JSON.stringify([table, partition, row]);
      const earlier = seen.get(key);
      // A repeated entity is written once.
      if (earlier && isDeepStrictEqual(earlier.values, values)) {
        repeats.set(index, earlier);
        continue;
      }
      if (earlier) throw entityError('duplicate-key', entity, values, 'is in the batch twice, with different fields.');
      seen.set(key, { index, values });
      const group = JSON.stringify([table, partition]);
      partitions.set(group, [...(partitions.get(group) ?? []), { index, values }]);
    } catch (error) {
      outcomes.set(index, asOutcome(error));
    }
  }
  const chunks = [...partitions.values()].map((items) => chunksOf(items, ENTITIES_CONCURRENCY));
  let failure: unknown;
  // After a failure no partition is started, and the running ones are awaited, because the audit log needs their changes.
  await pMap(
    chunks,
    async (ofPartition) => {
      try {
        for (const items of ofPartition)
          if (!failure) await putTogether({ engine, entity, outcomes, abandoned: new Set() }, items);
      } catch (error) {
        failure ??= error;
      }
    },
    { concurrency: PARTITIONS_CONCURRENCY },
  );
  if (failure) throw failure;
  for (const [index, earlier] of repeats) {
    const outcome = outcomes.get(earlier.index);
    outcomes.set(index, outcome instanceof RowkeyError ? outcome : 'unchanged');
  }
  return inputs.map((_, index) => outcomes.get(index) ?? 'unchanged');
}

interface Batch {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly outcomes: Map<number, BatchOutcome>;
  readonly abandoned: Set<string>;
}

/** Writes all in one transaction. If it fails, writes each half, until the entity that fails is alone. */
async function putTogether(batch: Batch, items: readonly Item[], attempt = 1): Promise<void> {
  const { engine, entity, outcomes, abandoned } = batch;
  const changes = await pMap(items, (item) => changeOf(engine, entity, item), { concurrency: READS_CONCURRENCY });
  const needed = changes.filter((change) => change.outcome !== 'unchanged');
  for (const { index, outcome } of changes) if (outcome === 'unchanged') outcomes.set(index, outcome);
  const [first] = needed;
  if (!first) return;
  try {
    await commit(engine, entity, needed, { abandoned });
    for (const { index, outcome } of needed) outcomes.set(index, outcome);
  } catch (error) {
    if (error instanceof EntityChanged && attempt < MAX_ATTEMPTS) return putTogether(batch, needed, attempt + 1);
    if (needed.length === 1) return void outcomes.set(first.index, asOutcome(error));
    asOutcome(error);
    const middle = Math.ceil(needed.length / 2);
    await putTogether(batch, needed.slice(0, middle));
    await putTogether(batch, needed.slice(middle));
  }
}

async function changeOf(engine: Engine, entity: Entity, { index, values }: Item) {
  const address = addressOf(entity, values);
  // The table of a period may not exist yet: the write creates it.
  const row = await readEntityRow(engine, entity, address);
  const found = toSnapshot(entity, row);
  const judged = row && found.state === 'live' ? judgeRow(entity, row) : undefined;
  // An insert conflicts with a copy, a list or another entity type under the same key.
  const before = judged?.is === 'other' ? toSnapshot(entity, undefined) : (judged?.snapshot ?? found);
  const current = liveValues(before);
  const after = await toStored(engine, entity, { ...pick(current ?? {}, keptFields(entity)), ...values }, current);
  const outcome = !current ? 'created' : isDeepStrictEqual(current, after) ? 'unchanged' : 'replaced';
  return { index, values, address, before, after, outcome } satisfies Change & Item & { outcome: BatchOutcome };
}

/** Errors of one entity are its outcome; errors of storage are thrown. */
function asOutcome(error: unknown): RowkeyError {
  if (error instanceof EntityChanged) return busy('Other requests keep changing the same entity.');
  if (error instanceof RowkeyError && error.code !== 'storage-unavailable') return error;
  throw error;
}

function chunksOf<Element>(list: readonly Element[], size: number): Element[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, chunk) =>
    list.slice(chunk * size, (chunk + 1) * size),
  );
}
