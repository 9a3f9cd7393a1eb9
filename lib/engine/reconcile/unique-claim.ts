import { isOutcomeUnknown } from '../../base/errors.ts';
import { isoInstant } from '../../base/time.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { CLAIM } from '../../define/places/index-entries.ts';
import { type Address, type Row, readRow, tryAction, trySubmit } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';

/** Entities may compete for a row of a unique index. A writer claims the row before it writes its entity. */

/** A row with the claim of this write. */
export interface ClaimedRow extends Row {
  /** True if this write inserted the row. */
  readonly isNew: boolean;
}

/** The claimed row, or the reason why it is not claimed. */
type ClaimOutcome = ClaimedRow | 'held-by-another' | 'being-claimed';

/** True if the row of a unique index belongs to `owner`. */
export function isOwnedBy(row: Row, owner: Pick<Address, 'partition' | 'row'>): boolean {
  return row.properties.SourcePartition === owner.partition && row.properties.SourceRow === owner.row;
}

/** A writer or reconciler that may ignore some claims: its own, and those of writes that certainly failed. */
interface Claimant {
  readonly intent: string;
  readonly abandoned?: ReadonlySet<string> | undefined;
  /** Aborts a claim at the deadline of its writer. */
  readonly signal?: AbortSignal;
}

/**
 * True if the row has another writer's claim and that writer may still commit. Claims expire by the clock of storage, at its
 * earliest, because the clocks of processes may differ. A process that has had no response yet uses its own.
 */
export function hasLiveClaim(row: Row, { intent, abandoned }: Claimant, { storage, now }: Engine): boolean {
  const { Claim, ClaimExpires } = row.properties;
  if (typeof Claim !== 'string' || Claim === '' || Claim === intent || abandoned?.has(Claim)) return false;
  return Date.parse(String(ClaimExpires)) > (storage.clock.earliestTime() ?? now());
}

/**
 * Claims a row for `owner` if the row is free, or if it belongs to `owner` and has no live claim of another writer. A free
 * row needs one transaction.
 */
export async function claim(
  engine: Engine,
  indexEntry: IndexEntry,
  owner: Address,
  claimant: Claimant,
): Promise<ClaimOutcome> {
  const { storage } = engine;
  const { intent, signal } = claimant;
  const marks = marksOf(engine, intent);
  for (;;) {
    let unknown: unknown;
    const inserted = await insertClaim(engine, indexEntry, owner, { marks, signal }).catch((error: unknown) => {
      // After the time limit, the writer could not use its claim, and the read could take for ever.
      if (!isOutcomeUnknown(error) || signal?.aborted) throw error;
      unknown = error;
    });
    if (inserted) return { ...inserted, isNew: true };
    const row = await readRow(storage, indexEntry);
    // This write's own claim: a reply was lost. The row may have existed before.
    if (row?.properties.Claim === intent) return { ...row, isNew: false };
    // The claim may still be inserted. The intent, which stays hidden, settles it.
    if (unknown) throw unknown;
    if (!row) continue;
    if (!isOwnedBy(row, owner)) return 'held-by-another';
    if (hasLiveClaim(row, claimant, engine)) return 'being-claimed';
    const merge = { kind: 'merge', row: indexEntry.row, properties: marks, etag: row.etag } as const;
    const where = { ...toPartition(indexEntry), signal };
    const etags = await trySubmit(storage, { ...where, actions: [merge] });
    if (!etags) continue;
    const properties = { ...row.properties, ...marks };
    return { ...row, etag: etags.get(indexEntry.row) ?? '', properties, isNew: false };
  }
}

/**
 * Deletes the rows that a write claimed, after it certainly failed. False if a row is left to the reconciler: one that existed
 * before, which a concurrent change may have left to this claim, or one that changed since.
 */
export async function releaseClaims(
  { storage }: Engine,
  claimed: readonly ClaimedRow[],
  signal?: AbortSignal,
): Promise<boolean> {
  for (const { isNew, etag, ...address } of claimed) {
    const where = { ...address, signal };
    if (!isNew || !(await tryAction(storage, where, { kind: 'delete', row: address.row, etag }))) return false;
  }
  return true;
}

/** Claims a free row for `owner`. False if the row exists, even with the same claim. */
export async function claimFree(
  engine: Engine,
  indexEntry: IndexEntry,
  owner: Address,
  intent: string,
): Promise<boolean> {
  return (await insertClaim(engine, indexEntry, owner, { marks: marksOf(engine, intent) })) !== undefined;
}

async function insertClaim(
  { storage }: Engine,
  indexEntry: IndexEntry,
  { partition: SourcePartition, row: SourceRow }: Address,
  { marks, signal }: { readonly marks: ReturnType<typeof marksOf>; readonly signal?: AbortSignal | undefined },
): Promise<Row | undefined> {
  const properties = { EntityType: CLAIM, SourcePartition, SourceRow, Confirmed: false, ...marks };
  const insert = { kind: 'insert', row: indexEntry.row, properties } as const;
  const where = { ...toPartition(indexEntry), signal };
  const etags = await trySubmit(storage, { ...where, actions: [insert] });
  return (
    etags && { ...toPartition(indexEntry), row: indexEntry.row, etag: etags.get(indexEntry.row) ?? '', properties }
  );
}

function toPartition({ table, partition }: IndexEntry) {
  return { table, partition };
}

function marksOf({ storage, now, timing }: Engine, intent: string) {
  return { Claim: intent, ClaimExpires: isoInstant((storage.clock.latestTime() ?? now()) + timing.claimForMs) };
}
