import { type Address, type Row, readRow, tryAction } from '../storage/rows.ts';
import type { Engine } from './engine.ts';
import type { Place } from './places.ts';

/** Several entities may compete for a row of a unique index: a writer claims it before its entity is written. */

export type ClaimOutcome = 'claimed' | 'held-by-another' | 'being-claimed';

/** Who a row of a unique index belongs to. */
export function isOwnedBy(row: Row, owner: Pick<Address, 'partition' | 'row'>): boolean {
  return row.properties.SourcePartition === owner.partition && row.properties.SourceRow === owner.row;
}

/** Whether a claim other than `intent` is on the row whose writer may still commit. */
export function hasLiveClaim(row: Row, intent: string, now: number): boolean {
  const { Claim, ClaimExpires } = row.properties;
  return typeof Claim === 'string' && Claim !== '' && Claim !== intent && Date.parse(String(ClaimExpires)) > now;
}

export function isConfirmed(row: Row): boolean {
  return row.properties.Confirmed === true;
}

/**
 * Claims the row for `owner` on behalf of `intent`: a free row, or its own unless another writer's live claim is on it.
 * One transaction when the row is free.
 */
export async function claim(engine: Engine, place: Place, owner: Address, intent: string): Promise<ClaimOutcome> {
  const { storage, now, timing } = engine;
  const marks = { Claim: intent, ClaimExpires: new Date(now() + timing.claimForMs).toISOString() };
  const fresh = { EntityType: 'claim', SourcePartition: owner.partition, SourceRow: owner.row, Confirmed: false, ...marks };
  for (;;) {
    if (await tryAction(storage, place, { kind: 'insert', row: place.row, properties: fresh })) return 'claimed';
    const row = await readRow(storage, place);
    if (!row) continue;
    // The claim of this very write: its reply was lost and the SDK asked again.
    if (row.properties.Claim === intent) return 'claimed';
    if (!isOwnedBy(row, owner)) return 'held-by-another';
    if (hasLiveClaim(row, intent, now())) return 'being-claimed';
    if (await tryAction(storage, place, { kind: 'merge', row: place.row, properties: marks, etag: row.etag })) return 'claimed';
  }
}
