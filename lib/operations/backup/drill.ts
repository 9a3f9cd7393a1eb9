import { setTimeout as sleep } from 'node:timers/promises';
import { isoInstant } from '../../base/time.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import { dropTable, listTables } from '../../storage/provision.ts';
import { toTime } from '../../storage/row-journal.ts';
import { type Address, readRange } from '../../storage/rows.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';
import type { Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { recordDrill } from './check-results.ts';
import type { Manifest } from './format.ts';
import { sourceOf } from './history.ts';
import { type BackupSource, type RowState, readJournal, readManifests, readState } from './read-backup.ts';
import { restoreRows, textOf } from './restore-rows.ts';

/**
 * A backup that nobody has restored is a hope. A drill restores partitions that were written after the last snapshot, which only the journal has,
 * to tables with a prefix of their own, compares them with the backup and with the app, and drops the tables.
 */

export interface DrillReport {
  readonly at: string;
  readonly partitions: number;
  readonly rows: number;
  /** A sentence for each partition that differs. They name tables, and no keys. */
  readonly differences: readonly string[];
}

/** The longest prefix: see resource-names.ts. */
const MAX_PREFIX = 20;

/** The prefix of the tables of a drill. No other app has it, unless it has the same account and nearly the same prefix. */
export function drillPrefix({ prefix }: { readonly prefix: string }): string {
  return `drill${prefix}`.slice(0, MAX_PREFIX);
}

/** Partitions in one drill. */
const SAMPLE = 8;
/** A partition that is written all the time is compared again. */
const ATTEMPTS = 4;
const PATIENCE_MS = 1_000;

type Partition = Pick<Address, 'table' | 'partition'>;

/** Restores a sample. `scratch` has the accounts of the app under another prefix, of which every table is dropped. */
export const drillBackup = inPattern('backup', async (engine: Engine, scratch: Storage): Promise<DrillReport> => {
  const source = sourceOf(engine);
  // An earlier drill may have been killed.
  await dropAll(scratch);
  try {
    const partitions = await choosePartitions(engine, source);
    const at = toTime(engine.now()) ?? '';
    const restored = await restoreRows(scratch, statesOf(source, partitions, at));
    const differences = restored
      .filter(({ isEqual }) => !isEqual)
      .map(({ table }) => `The rows of ${table} that were restored are not those of the backup.`);
    for (const partition of partitions)
      if (!(await isAsStored(engine, source, partition)))
        differences.push(`The backup of a partition of ${partition.table} is not what is stored.`);
    const rows = restored.reduce((sum, table) => sum + table.rows, 0);
    const report = { at: isoInstant(engine.now()), partitions: partitions.length, rows, differences };
    await recordDrill(engine, {
      At: report.at,
      Partitions: report.partitions,
      Rows: rows,
      Differences: differences.length,
    });
    return report;
  } finally {
    await dropAll(scratch);
  }
});

async function dropAll(scratch: Storage): Promise<void> {
  for (const table of await listTables(scratch, '')) await dropTable(scratch, table);
}

/** Partitions that were written since the last snapshot, each as likely as any other. Of an app that has written nothing, some of the snapshot. */
async function choosePartitions(engine: Engine, source: BackupSource): Promise<Partition[]> {
  const manifest: Manifest | undefined = (await readManifests(source).next()).value;
  const from = manifest?.finishedAt ?? toTime(engine.now()) ?? '';
  const chosen: Partition[] = [];
  const seen = new Set<string>();
  for await (const line of readJournal(source, { from, to: toTime(engine.now()) ?? '' })) {
    if ('dropped' in line || line.table === SYSTEM_TABLE) continue;
    const { table, partition } = line;
    const name = JSON.stringify([table, partition]);
    if (seen.has(name)) continue;
    seen.add(name);
    // Reservoir sampling.
    const place = seen.size <= SAMPLE ? chosen.length : Math.floor(Math.random() * seen.size);
    if (place < SAMPLE) chosen[place] = { table, partition };
  }
  const parts = Object.entries(manifest?.tables ?? {}).flatMap(([table, { parts: all }]) =>
    table === SYSTEM_TABLE ? [] : all.map(({ first }) => ({ table, partition: first.partition })),
  );
  const sample = chosen.length > 0 ? chosen : parts.slice(0, SAMPLE);
  return sample.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

const nameOf = ({ table, partition }: Partition) => `${table}/${partition}`;

async function* statesOf(source: BackupSource, partitions: readonly Partition[], at: string): AsyncGenerator<RowState> {
  for (const partition of partitions) yield* (await readState(source, at, partition)).rows;
}

/** True if the backup has what the app has stored. */
async function isAsStored(engine: Engine, source: BackupSource, partition: Partition): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    const { rows: stored } = await unlessTableMissing(
      readRange(engine.storage, { ...partition, from: '', isTyped: true }),
      { rows: [], more: false },
    );
    const { rows } = await readState(source, toTime(engine.now()) ?? '', partition);
    const [one, other] = [stored.map(textOf), (await Array.fromAsync(rows)).map(textOf)];
    if (one.join('') === other.join('')) return true;
    if (attempt === ATTEMPTS) return false;
    await sleep(PATIENCE_MS);
  }
}
