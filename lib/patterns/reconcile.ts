import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { busy } from '../errors.ts';
import { type Address, type Properties, type Row, readRow, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import type { Engine } from './engine.ts';
import type { Entity, Values } from './entity.ts';
import { liveValues, PLACEHOLDER, type Snapshot, TOMBSTONE, toSnapshot, toValues } from './entity-codec.ts';
import type { InterPartitionIndex } from './indexes.ts';
import type { Intent } from './intent.ts';
import { settleMember } from './list-upkeep.ts';
import { copyProperties, isCopy, isUnique, type Place, placesOf, samePlace, unionOfPlaces } from './places.ts';
import { hasLiveClaim, isConfirmed, isOwnedBy } from './unique-claim.ts';

/**
 * Eventually consistent transactions pattern, the reconciler's side: makes the places that an intent names agree with
 * their entity as it is now, whatever the order and the number of intents.
 *
 *   places of its own   read the entity -> each place under that place's ETag, refused: start over
 *                       -> read the entity again, changed: start over
 *   contested rows      read the row -> a live claim of another intent: leave it -> only then read the entity
 *                       -> act under the row's ETag, refused: again from the row; never create the row
 *   a tombstone         goes when every place agrees
 *
 * The second read of the entity is what makes reordered intents safe.
 */

/** Well below the ten minutes for which a queue message is held: past it another reconciler may have it. */
export const HOLD_MS = 4 * 60_000;
const ENTITIES_AT_ONCE = 8;

/** Throws to be tried again; a message that came too late for its hold is left to the next holder. */
export const reconcile = inPattern(
  'reconcile',
  async (engine: Engine, entity: Entity, intent: Pick<Intent, 'intent' | 'table' | 'items'>): Promise<void> => {
    const until = engine.now() + HOLD_MS;
    const work: Work = { engine, entity, intent: intent.intent, until };
    await pMap(
      intent.items,
      (item) => reconcileEntity(work, { table: intent.table, partition: item.partition, row: item.row }, item.places),
      {
        concurrency: ENTITIES_AT_ONCE,
      },
    );
  },
);

interface Work {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly intent: string;
  readonly until: number;
}

async function reconcileEntity(work: Work, address: Address, named: readonly Place[]): Promise<void> {
  const { engine, entity } = work;
  for (;;) {
    const before = await readSnapshot(work, address);
    const places = unionOfPlaces(named, placesOf(entity, liveValues(before)));
    const contested = places.filter((place) => isUnique(entity.indexes[place.index]));
    const own = places.filter((place) => !contested.includes(place));
    let refused = false;
    for (const place of own) refused ||= !(await settleOwn(work, { address, snapshot: before, place }));
    if (refused) continue;
    for (const place of contested) await settleContested(work, address, place);
    const after = await readSnapshot(work, address);
    if (etagOf(after) !== etagOf(before)) continue;
    // The one of an entity that moves is taken away by the move.
    if (after.state === 'tombstone' && !after.movedTo)
      await tryAction(engine.storage, address, { kind: 'delete', row: address.row, etag: after.etag });
    return;
  }
}

/** A copy under the entity's own key, or its place in a list. Answers false when the place changed meanwhile. */
async function settleOwn(
  { engine, entity, until }: Work,
  { address, snapshot, place }: { readonly address: Address; readonly snapshot: Snapshot; readonly place: Place },
): Promise<boolean> {
  const values = liveValues(snapshot);
  const wanted = placesOf(entity, values).some((other) => samePlace(other, place));
  const { member } = place;
  if (member !== undefined)
    return settleMember(engine.storage, { ...place, member }, { wanted, check: () => checkHold({ engine, until }) });
  const row = await readRow(engine.storage, place);
  checkHold({ engine, until });
  const index = entity.indexes[place.index];
  if (!wanted || !values || index?.kind !== 'inter-partition')
    return row && isEntryOf(entity, address, row)
      ? tryAction(engine.storage, place, { kind: 'delete', row: place.row, etag: row.etag })
      : true;
  const properties = copyProperties(entity, values, index.copies);
  if (!row) return tryAction(engine.storage, place, { kind: 'insert', row: place.row, properties });
  return (
    sameCopy(entity, row, properties) ||
    tryAction(engine.storage, place, { kind: 'replace', row: place.row, properties, etag: row.etag })
  );
}

/** A row that several entities compete for: confirmed or removed, never created, and judged before the entity is read. */
async function settleContested(work: Work, address: Address, place: Place): Promise<void> {
  const { engine, entity } = work;
  for (;;) {
    const row = await readRow(engine.storage, place);
    if (!row || !isEntryOf(entity, address, row)) return;
    if (hasLiveClaim(row, work, engine.now())) return;
    const values = liveValues(await readSnapshot(work, address));
    const wanted = placesOf(entity, values).some((other) => samePlace(other, place));
    checkHold(work);
    if (!wanted || !values) {
      if (await tryAction(engine.storage, place, { kind: 'delete', row: place.row, etag: row.etag })) return;
      continue;
    }
    const properties = confirmedRow(entity, values, place);
    if (isConfirmed(row) && !row.properties.Claim && sameCopy(entity, row, properties)) return;
    if (await tryAction(engine.storage, place, { kind: 'replace', row: place.row, properties, etag: row.etag })) return;
  }
}

/** A row of a unique index whose entity is committed. */
export function confirmedRow(entity: Entity, values: Values, place: Place): Properties {
  const index = entity.indexes[place.index] as InterPartitionIndex;
  return { ...copyProperties(entity, values, index.copies), Confirmed: true };
}

/** Whether a row is the copy that is wanted, of the entity that it should be of. */
export function sameCopy(entity: Entity, row: Row, wanted: Properties): boolean {
  return (
    isOwnedBy(row, { partition: String(wanted.SourcePartition), row: String(wanted.SourceRow) }) &&
    isDeepStrictEqual(toValues(entity, row.properties), toValues(entity, wanted))
  );
}

/** Whether a row is a copy or a claim of this very entity: nothing else is deleted. */
function isEntryOf({ name }: Entity, address: Address, row: Row): boolean {
  const { EntityType } = row.properties;
  return (EntityType === name || EntityType === 'claim') && isOwnedBy(row, address);
}

/** A row of another type, or a copy, is not the entity. */
async function readSnapshot({ engine, entity }: Work, address: Address): Promise<Snapshot> {
  const row = await readRow(engine.storage, address);
  const type = row?.properties.EntityType;
  const isDeleted = type === TOMBSTONE || type === PLACEHOLDER;
  const isLive = type === entity.name && row !== undefined && !isCopy(row);
  return toSnapshot(entity, isDeleted || isLive ? row : undefined);
}

function etagOf(snapshot: Snapshot): string {
  return snapshot.state === 'absent' ? '' : snapshot.etag;
}

/** Throws `busy` where it is too late to write: whoever holds the message next goes on. */
export function checkHold({ engine, until }: Pick<Work, 'engine' | 'until'>): void {
  if (engine.now() > until) throw busy('The hold on the message is running out.');
}
