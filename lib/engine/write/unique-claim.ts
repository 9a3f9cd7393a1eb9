import type { IndexEntry } from '../../define/index-entries.ts';
import { type Address, type Row, readRow, trySubmit } from '../../storage/rows.ts';
import { isoInstant } from '../../time.ts';
import type { Engine } from '../engine.ts';

/** Several entities may compete for a row of a unique index: a writer claims it before its entity is written. */

/** The row as it was claimed, or why it was not. */
export type ClaimOutcome = Row | 'held-by-another' | 'being-claimed';

/** Who a row of a unique index belongs to. */
export function isOwnedBy(row: Row, owner: Pick<Address, 'partition' | 'row'>): boolean {
  return row.properties.SourcePartition === owner.partition && row.properties.SourceRow === owner.row;
}

/** Whose claims do not stand in the way of a write or of a reconciler: its own, and those known to have come to nothing. */
export interface Claimant {
  readonly intent: string;
  readonly abandoned?: ReadonlySet<string> | undefined;
  /** Gives up a claim that takes longer than its writer has. */
  readonly signal?: AbortSignal;
}

/** Whether another's claim is on the row whose writer may still commit. */
export function hasLiveClaim(row: Row, { intent, abandoned }: Claimant, now: number): boolean {
  const { Claim, ClaimExpires } = row.properties;
  if (typeof Claim !== 'string' || Claim === '' || Claim === intent || abandoned?.has(Claim)) return false;
  return Date.parse(String(ClaimExpires)) > now;
}

/** Whether the entity of a row of a unique index is known to be committed. */
export function isConfirmed(row: Row): boolean {
  return row.properties.Confirmed === true;
}

/**
 * Claims the row for `owner`: a free row, or its own unless another writer's live claim is on it.
 * One transaction when the row is free.
 */
export async function claim(
  engine: Engine,
  indexEntry: IndexEntry,
  owner: Address,
  claimant: Claimant,
): Promise<ClaimOutcome> {
  const { storage, now } = engine;
  const { intent, signal } = claimant;
  const marks = marksOf(engine, intent);
  for (;;) {
    const inserted = await insertClaim(engine, indexEntry, owner, { marks, signal });
    if (inserted) return inserted;
    const row = await readRow(storage, indexEntry);
    if (!row) continue;
    // The claim of this very write: its reply was lost and the SDK asked again.
    if (row.properties.Claim === intent) return row;
    if (!isOwnedBy(row, owner)) return 'held-by-another';
    if (hasLiveClaim(row, claimant, now())) return 'being-claimed';
    const merge = { kind: 'merge', row: indexEntry.row, properties: marks, etag: row.etag } as const;
    const where = { ...toPartition(indexEntry), ...(signal ? { signal } : {}) };
    const etags = await trySubmit(storage, { ...where, actions: [merge] });
    if (etags) return { ...row, etag: etags.get(indexEntry.row) ?? '', properties: { ...row.properties, ...marks } };
  }
}

/** Claims a row for `owner` that nobody has. False where somebody has it, who may be this very claimant. */
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
  const properties = { EntityType: 'claim', SourcePartition, SourceRow, Confirmed: false, ...marks };
  const insert = { kind: 'insert', row: indexEntry.row, properties } as const;
  const where = { ...toPartition(indexEntry), ...(signal ? { signal } : {}) };
  const etags = await trySubmit(storage, { ...where, actions: [insert] });
  return (
    etags && { ...toPartition(indexEntry), row: indexEntry.row, etag: etags.get(indexEntry.row) ?? '', properties }
  );
}

function toPartition({ table, partition }: IndexEntry) {
  return { table, partition };
}

function marksOf({ now, timing }: Engine, intent: string) {
  return { Claim: intent, ClaimExpires: isoInstant(now() + timing.claimForMs) };
}
