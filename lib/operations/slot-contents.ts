import pMap from 'p-map';
import { RowkeyError } from '../base/errors.ts';
import { commandLine } from '../command-line.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { ARRIVALS_CONTAINER } from '../features/large-entities/attachment.ts';
import { placeOfBlob } from '../storage/blob-owner.ts';
import { copyBlobs, deleteBlobs } from '../storage/copy-blobs.ts';
import { type Copied, copyRows, deleteRows, readLeft } from '../storage/copy-rows.ts';
import { isTableGone } from '../storage/errors.ts';
import { listRegistered } from '../storage/fence.ts';
import { createTable, listTables } from '../storage/provision.ts';
import { BACKUP_CONTAINER } from '../storage/row-journal.ts';
import { type Address, trySubmit } from '../storage/rows.ts';
import { indexIn, type Layers } from '../storage/slot-row.ts';
import { placeOf, slotIndex } from '../storage/slots.ts';
import type { Account, Storage } from '../storage/storage.ts';
import { ownRowsIn, tablesIn } from './app-tables.ts';
import type { MoveProgress } from './mover-hold.ts';
import type { AppResources } from './resources.ts';

/** What is in slots of an account: the rows of their partitions and their blobs, which a mover copies to another account and deletes. */

/** What a mover needs while it copies and deletes. */
export interface CopyWork {
  /** Throws if this mover may write no more. */
  readonly mayWrite: () => void;
  readonly tell: (progress: MoveProgress) => void;
  readonly storage: Storage;
  readonly resources: Pick<AppResources, 'tables' | 'containers' | 'clientTables' | 'isOwnRow'>;
  readonly report: { rows: number; written: number; deleted: number; blobs: number };
  /** When the last copy was sent whose outcome is unknown. */
  unknownAt: number;
  /** By how much the clock of an account is ahead of `performance.now()`, at least, by the name of the account: from the times of copies. */
  readonly aheadMs: Map<string, number>;
}

/** Some slots of a move between two accounts. */
export interface Leg {
  readonly source: Account;
  readonly target: Account;
  readonly id: string;
  readonly slots: readonly string[];
  /** Those of the source, with which the target agrees. */
  readonly layers: Layers;
  readonly isClosed: boolean;
  /** When its slots were closed, in milliseconds. A mover of a former release does not say. */
  readonly closedAt?: number | undefined;
}

const ROW_PASSES = 10;
const CONCURRENCY = 8;

/** Returns which partitions of a table, and which blobs, are in the slots. */
function membersOf({ slots, layers }: Pick<Leg, 'slots' | 'layers'>) {
  const indexes = new Set(slots.map(slotIndex));
  return {
    inTable(table: string): (partition: string) => boolean {
      let last: readonly [partition: string, isMoved: boolean] | undefined;
      return (partition) => {
        if (last?.[0] !== partition) last = [partition, indexes.has(indexIn({ layers }, placeOf(table, partition)))];
        return last[1];
      };
    },
    hasBlob: (name: string) => indexes.has(indexIn({ layers }, placeOfBlob(name))),
  };
}

/** Copies all rows of the slots, until a comparison finds a difference in opened partitions only. */
export async function copyLeg(work: CopyWork, leg: Leg): Promise<void> {
  const { source, target, id } = leg;
  const { inTable } = membersOf(leg);
  // The target may have a table that was dropped while another mover copied it.
  const tables = await tablesIn(work, source, target);
  for (let pass = 1; ; pass += 1) {
    const changed = new Set<string>();
    let unknown = 0;
    const blocked: Address[] = [];
    await pMap(
      tables,
      async (table) => {
        const onRows = (rows: number) => work.tell({ what: 'copy', pass, table, rows });
        const copied = await copyTable(work, { source, target }, { table, isMoved: inTable(table), onRows });
        if (pass === 1) work.report.rows += copied.rows;
        unknown += copied.unknown;
        blocked.push(...copied.blocked);
        for (const partition of copied.changed) changed.add(partitionId({ table, partition }));
      },
      { concurrency: CONCURRENCY },
    );
    if (blocked.length > 0) throw blockedBy(target, blocked);
    const opened = new Set((await listRegistered(source, id)).map(partitionId));
    if (unknown === 0 && [...changed].every((partition) => opened.has(partition))) break;
    if (pass === ROW_PASSES)
      throw new RowkeyError(
        'busy',
        `The rows of the accounts ${source.name} and ${target.name} differ after ${pass} comparisons.`,
      );
  }
  // A client may replace what it uploads in blocks, as long as its grant is valid. The clean-up copies uploads.
  const containers = work.resources.containers.filter((container) => container !== ARRIVALS_CONTAINER);
  await copyBlobsOf(work, leg, containers);
}

/** The error of rows that cannot be copied. An operator reads it, who needs the key. */
function blockedBy({ name }: Account, [first, ...others]: readonly Address[]): RowkeyError {
  const more = others.length > 0 ? ` It has ${others.length} more such rows.` : '';
  const { table, partition, row } = first ?? { table: '', partition: '', row: '' };
  return new RowkeyError(
    'needs-repair',
    `The account ${name} has a row of another program at the key of a row that moves there: ${JSON.stringify([table, partition, row])}.${more} Nothing is overwritten, and the move waits. Give the other row another key and continue with ${commandLine('accounts', 'resume')}, or end the move with ${commandLine('accounts', 'abort')}.`,
  );
}

/** Other blobs do not change, and readers find those that are not copied yet. */
export async function copyBlobsOf(
  work: CopyWork,
  leg: Pick<Leg, 'source' | 'target' | 'slots' | 'layers'>,
  containers = work.resources.containers,
) {
  const { source, target } = leg;
  const { hasBlob: isMoved } = membersOf(leg);
  for (const container of containers) {
    work.tell({ what: 'copy', pass: 1, table: container, rows: 0 });
    work.report.blobs += await copyBlobs(source, target, { container, isMoved, mayWrite: work.mayWrite });
  }
}

/**
 * Gives the rows that a move of an earlier release has left at its source to the account that owns them now, unless that one has a row with the
 * key: before the source is cleaned up, or gets the rows of the other one.
 */
export async function bringLeftRows(
  work: CopyWork,
  { source, slots, layers }: Pick<Leg, 'source' | 'slots' | 'layers'>,
): Promise<void> {
  const { inTable } = membersOf({ slots, layers });
  for (const table of await tablesIn(work, source)) {
    const isMoved = inTable(table);
    const isOwnRow = await ownRowsIn(work, table);
    for await (const { partition, row, properties } of readLeft(source, table)) {
      if (!isMoved(partition) || !isOwnRow({ table, partition, row, properties })) continue;
      work.mayWrite();
      await trySubmit(work.storage, { table, partition, actions: [{ kind: 'insert', row, properties }] });
    }
  }
}

const partitionId = ({ table, partition }: { readonly table: string; readonly partition: string }) =>
  `${table}/${partition}`;

/** Copies rows of a table. If the source has no such table any more, deletes what was copied of it. */
export async function copyTable(
  work: CopyWork,
  { source: from, target: to }: Pick<Leg, 'source' | 'target'>,
  rows: Pick<Parameters<typeof copyRows>[0], 'table' | 'partition' | 'isMoved' | 'onRows'>,
): Promise<Copied> {
  const { table, partition, isMoved = (each) => each === partition } = rows;
  const isOwnRow = await ownRowsIn(work, table);
  const options = { from, to, mayWrite: work.mayWrite, isOwnRow, isOrdered: hasBackup(work), ...rows };
  const nothing: Copied = { rows: 0, written: 0, deleted: 0, unknown: 0, blocked: [], changed: new Set() };
  const copied = await copyRows(options).catch(async (error: unknown) => {
    if (!isTableGone(error)) throw error;
    // A table of a period was dropped, or created since: perhaps by a process that died before it created the target's.
    if (!(await listTables(from, table)).includes(table)) {
      const deleted = await unlessTableMissing(deleteRows(to, { ...options, isMoved }), 0);
      return { ...nothing, deleted };
    }
    try {
      await createTable(to, table);
      return await copyRows(options);
    } catch (again) {
      if (!isTableGone(again)) throw again;
      // It is being dropped in one account after the other.
      return { ...nothing, unknown: 1 };
    }
  });
  if (copied.unknown > 0) work.unknownAt = performance.now();
  if (copied.aheadMs !== undefined)
    work.aheadMs.set(to.name, Math.max(copied.aheadMs, work.aheadMs.get(to.name) ?? Number.NEGATIVE_INFINITY));
  work.report.written += copied.written;
  work.report.deleted += copied.deleted;
  return copied;
}

/** The app has a container for lines of the journal that wait. */
export const hasBackup = ({ resources }: Pick<CopyWork, 'resources'>) =>
  resources.containers.includes(BACKUP_CONTAINER);

interface ToDelete {
  readonly account: Account;
  readonly slots: readonly string[];
  readonly layers: Layers;
}

/** Deletes the rows and blobs of slots in an account that does not own them. */
export async function deleteSlots(work: CopyWork, { account, slots, layers }: ToDelete) {
  const deleted = { rows: 0, blobs: 0 };
  if (slots.length === 0) return deleted;
  const { mayWrite } = work;
  const { inTable, hasBlob: isMoved } = membersOf({ slots, layers });
  for (const table of await tablesIn(work, account))
    deleted.rows += await unlessTableMissing(
      deleteRows(account, { table, isMoved: inTable(table), isOwnRow: await ownRowsIn(work, table), mayWrite }),
      0,
    );
  for (const container of work.resources.containers)
    deleted.blobs += await deleteBlobs(account, { container, isMoved, mayWrite });
  return deleted;
}
