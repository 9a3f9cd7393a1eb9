import pMap from 'p-map';
import { hasCode, RowkeyError } from '../base/errors.ts';
import { placeOfBlob } from '../storage/blob-owner.ts';
import { copyBlobs, deleteBlobs } from '../storage/copy-blobs.ts';
import { type Copied, copyRows, deleteRows } from '../storage/copy-rows.ts';
import { listRegistered } from '../storage/fence.ts';
import { createTable, listTables, type Resources } from '../storage/provision.ts';
import { indexIn, type Layers } from '../storage/slot-row.ts';
import { placeOf, slotIndex } from '../storage/slots.ts';
import type { Account } from '../storage/storage.ts';
import type { MoveProgress } from './mover-hold.ts';

/** What is in slots of an account: the rows of their partitions and their blobs, which a mover copies to another account and deletes. */

/** What a mover needs while it copies and deletes. */
export interface CopyWork {
  /** Throws if this mover may write no more. */
  readonly mayWrite: () => void;
  readonly tell: (progress: MoveProgress) => void;
  readonly resources: Pick<Resources, 'tables' | 'containers'>;
  readonly report: { rows: number; written: number; deleted: number; blobs: number };
  /** When the last copy was sent whose outcome is unknown. */
  unknownAt: number;
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
}

const ROW_PASSES = 10;
const CONCURRENCY = 8;

/** The tables of the app in an account. */
async function tablesIn(account: Account, { tables }: CopyWork['resources']): Promise<string[]> {
  const withoutPeriod = (name: string) => name.replace(/\d+$/, '');
  const names = new Set([...tables, ...tables.map(withoutPeriod)]);
  return (await listTables(account, '')).filter((name) => names.has(name) || names.has(withoutPeriod(name)));
}

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
  const tables = await tablesIn(source, work.resources);
  for (let pass = 1; ; pass += 1) {
    const changed = new Set<string>();
    let unknown = 0;
    await pMap(
      tables,
      async (table) => {
        const onRows = (rows: number) => work.tell({ what: 'copy', pass, table, rows });
        if (pass === 1) await createTable(target, table);
        const copied = await copyTable(work, { source, target }, { table, isMoved: inTable(table), onRows });
        if (!copied) return;
        if (pass === 1) work.report.rows += copied.rows;
        unknown += copied.unknown;
        for (const partition of copied.changed) changed.add(partitionId({ table, partition }));
      },
      { concurrency: CONCURRENCY },
    );
    const opened = new Set((await listRegistered(source, id)).map(partitionId));
    if (unknown === 0 && [...changed].every((partition) => opened.has(partition))) break;
    if (pass === ROW_PASSES)
      throw new RowkeyError(
        'busy',
        `The rows of the accounts ${source.name} and ${target.name} differ after ${pass} comparisons.`,
      );
  }
  await copyBlobsOf(work, leg);
}

/** Blobs do not change, and readers find those that are not copied yet. */
export async function copyBlobsOf(work: CopyWork, leg: Pick<Leg, 'source' | 'target' | 'slots' | 'layers'>) {
  const { source, target } = leg;
  const { hasBlob: isMoved } = membersOf(leg);
  for (const container of work.resources.containers) {
    work.tell({ what: 'copy', pass: 1, table: container, rows: 0 });
    work.report.blobs += await copyBlobs(source, target, { container, isMoved, mayWrite: work.mayWrite });
  }
}

const partitionId = ({ table, partition }: { readonly table: string; readonly partition: string }) =>
  `${table}/${partition}`;

/** Copies rows of a table. Undefined if the source has no such table any more. */
export async function copyTable(
  work: CopyWork,
  { source: from, target: to }: Pick<Leg, 'source' | 'target'>,
  rows: Pick<Parameters<typeof copyRows>[0], 'table' | 'partition' | 'isMoved' | 'onRows'>,
): Promise<Copied | undefined> {
  const options = { from, to, mayWrite: work.mayWrite, ...rows };
  const copied = await copyRows(options).catch(async (error: unknown) => {
    if (!hasCode(error, 'not-provisioned')) throw error;
    // A table of a period was dropped, or created since: perhaps by a process that died before it created the target's.
    if (!(await listTables(from, rows.table)).includes(rows.table)) return undefined;
    await createTable(to, rows.table);
    return copyRows(options);
  });
  if (copied && copied.unknown > 0) work.unknownAt = performance.now();
  work.report.written += copied?.written ?? 0;
  work.report.deleted += copied?.deleted ?? 0;
  return copied;
}

interface ToDelete {
  readonly account: Account;
  readonly slots: readonly string[];
  readonly layers: Layers;
}

/** Deletes the rows and blobs of slots in an account that does not own them. */
export async function deleteSlots({ mayWrite, resources }: CopyWork, { account, slots, layers }: ToDelete) {
  const deleted = { rows: 0, blobs: 0 };
  if (slots.length === 0) return deleted;
  const { inTable, hasBlob: isMoved } = membersOf({ slots, layers });
  for (const table of await tablesIn(account, resources))
    deleted.rows += await deleteRows(account, { table, isMoved: inTable(table), mayWrite });
  for (const container of resources.containers)
    deleted.blobs += await deleteBlobs(account, { container, isMoved, mayWrite });
  return deleted;
}
