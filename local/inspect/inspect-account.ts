import { listTables } from '../../lib/storage/provision.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import { findTyped, followIds } from './follow-ids.ts';
import { addIndexes, type Proposal, proposeTables } from './propose-tables.ts';
import { type Sample, sampleTable } from './sample-table.ts';

export interface InspectOptions {
  /** The tables; by default all of the account. */
  readonly tables?: readonly string[] | undefined;
  /** The most rows, and reads, of each table. */
  readonly rows: number;
  readonly reads: number;
  readonly signal: AbortSignal;
  readonly onRead: (table: string, rows: number) => void;
}

export interface Inspected {
  readonly proposal: Proposal;
  /** Tables that are not read, each with the reason. */
  readonly skipped: readonly { readonly table: string; readonly reason: string }[];
}

/** Tables of the platform. */
const OF_PLATFORM = /^(AzureWebJobs|AzureFunctions|WAD|Metrics|\$)/i;
/** So many tables whose names differ in a number at their end are of periods. */
const LEAST_OF_PERIODS = 3;

/** Reads a sample of the tables of an account, and proposes declarations. */
export async function inspectAccount(storage: Storage, options: InspectOptions): Promise<Inspected> {
  const all = await listTables(storage, '');
  const { tables, skipped } = chooseTables(all, options.tables);
  const samples: Sample[] = [];
  for (const table of tables) {
    if (options.signal.aborted) break;
    const onRead = (rows: number) => options.onRead(table, rows);
    samples.push(await sampleTable(storage, { ...options, table, onRead }));
  }
  const proposed = proposeTables(samples);
  const followed = await followIds(proposed, options.signal.aborted ? 0 : options.reads, (at) =>
    findTyped(storage, at),
  );
  return { proposal: addIndexes(proposed, followed), skipped };
}

/** The tables to read. Throws for a name that the account does not have. */
function chooseTables(
  all: readonly string[],
  wanted?: readonly string[],
): { readonly tables: string[]; readonly skipped: Inspected['skipped'] } {
  if (wanted) {
    const tables = wanted.map((name) => {
      const found = all.find((table) => table.toLowerCase() === name.toLowerCase());
      if (found === undefined) throw new Error(`The storage account has no table ${name}. It has ${all.join(', ')}.`);
      return found;
    });
    return { tables, skipped: [] };
  }
  const skipped: { table: string; reason: string }[] = [];
  const families = Map.groupBy(all, (table) => table.replace(/\d+$/, ''));
  const tables = all.filter((table) => {
    const family = families.get(table.replace(/\d+$/, '')) ?? [];
    const last = family.toSorted().at(-1);
    const isOfPeriods = family.length >= LEAST_OF_PERIODS && table !== last;
    if (OF_PLATFORM.test(table)) skipped.push({ table, reason: 'a table of the platform' });
    else if (isOfPeriods)
      skipped.push({ table, reason: `one of ${family.length} tables with a number, of which ${last} is read` });
    else return true;
    return false;
  });
  return { tables, skipped };
}
