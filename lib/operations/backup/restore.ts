import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { type Entity, withArchives } from '../../define/declaration/entity.ts';
import type { Finding } from '../../define/declaration/finding.ts';
import type { LinkedModel } from '../../define/define-model.ts';
import type { Engine } from '../../engine/engine.ts';
import { listTables, provision } from '../../storage/provision.ts';
import { toTime } from '../../storage/row-journal.ts';
import { type Address, type Row, readRow, scanTable, submit } from '../../storage/rows.ts';
import { isOfApp, SYSTEM_TABLE } from '../../storage/slot-row.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { tablesIn } from '../app-tables.ts';
import { guardModel } from '../model-guard.ts';
import { OWN_ENTITIES, ownRowsOf, resourcesOf } from '../resources.ts';
import { buildDerived, checkRestored } from './build-derived.ts';
import { type Erased, type ErasedAgain, eraseAgain } from './erase-again.ts';
import type { Manifest } from './format.ts';
import { tablesInBackup } from './journal.ts';
import {
  isTableOf,
  type RowSource,
  readState,
  requireVersions,
  rowsOf,
  snapshotFor,
  type WantedRows,
} from './read-backup.ts';
import { noteBlobs, type RestoredBlobs, restoreBlobs } from './restore-blobs.ts';
import { type RestoredTable, restoreRows } from './restore-rows.ts';
import { type Settled, settleRestored } from './settle-restored.ts';

/**
 * Restores an app to another place: a prefix, an account, or any number of accounts, where it has no rows yet.
 *
 *   copying    users who are blocked now -> rows of the cut, table by table, compared by hash -> the blobs that they refer to
 *   copied     what was in the middle of something ends -> indexes, totals and lists are built -> persons who were erased since are erased again
 *   done       everything is checked
 *
 * A row in the target has the cut and how far the restore is. A repeated restore of the same cut continues, and one that is done changes nothing:
 * the app may have changed the rows since.
 */

export interface RestoreOptions {
  readonly source: RowSource;
  /** An instant with seven digits, as storage has it. */
  readonly at: string;
  /** Only this entity, with its archive and its periods; with `partition`, only this partition of their tables; with `row`, one entity and its children. */
  readonly entity?: string | undefined;
  readonly partition?: string | undefined;
  readonly row?: string | undefined;
  /** Erases all that the app has stored about a person. */
  readonly erase: (engine: Engine, subject: string) => Promise<Erased>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: RestoreProgress) => void) | undefined;
}

export interface RestoreProgress {
  readonly doing: 'copying' | 'settling' | 'building' | 'checking';
  /** The name of the table or the entity. */
  readonly name: string;
  /** Since the last call. */
  readonly rows: number;
}

export interface RestoreReport {
  readonly at: string;
  readonly snapshot: Pick<Manifest, 'id' | 'finishedAt'>;
  /** True if an earlier run had done everything. */
  readonly wasDone: boolean;
  /** Undefined if an earlier run had copied everything. */
  readonly tables: readonly RestoredTable[] | undefined;
  readonly blobs: RestoredBlobs | undefined;
  /** Tables of the backup that the model does not have. */
  readonly undeclared: readonly string[];
  /** Blocked as of the newest state of the backup. */
  readonly blocked: number;
  readonly settled: Settled;
  readonly erased: ErasedAgain;
  readonly findings: readonly Finding[];
}

/** What no restore brings back, and why. docs/internals/consistency.md has a test for each. */
export const NOT_RESTORED = [
  'Messages in queues, and messages that failed: what they were to do is finished or undone.',
  'Claims of unique values and intents of writes: indexes, totals and lists are built from the entities.',
  'Grants, delegation keys and revocations: a grant opens the place for which it was signed, and no other.',
  'Which account owns which slots, fences and layers: those of the new place.',
  'Counts of the limits of requests, and signatures of continuations: both begin again.',
  'The record of the model, of a move to another key, of consistency checks, and of uses of indexes: the app writes them again.',
  'What processes have in memory, such as memberships: where the app had no rows, there was nothing to remember.',
  'Values whose encryption key was deleted: they are restored as ciphertext, and stay unreadable.',
  'Rows that clients wrote with a grant, as they were between two snapshots.',
  'Persons who were erased since: they are erased again.',
] as const;

const MARK: Address = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.restore, row: SYSTEM_ROWS.restored };
const Mark = z.object({
  At: z.string(),
  Wanted: z.string(),
  Phase: z.enum(['copying', 'copied', 'done']),
});
type Mark = z.infer<typeof Mark>;

export const restoreBackup = inPattern(
  'backup',
  async (engine: Engine, model: LinkedModel, options: RestoreOptions): Promise<RestoreReport> => {
    const { source, at, signal, onProgress } = options;
    const { storage } = engine;
    const entities = model.list;
    const only = findEntity(model, options);
    const manifest = await snapshotFor(source, at);
    requireVersions(only ? [only] : entities, manifest);
    await provision(storage, resourcesOf(entities, engine.now(), model));
    const wanted = JSON.stringify({ entity: options.entity, partition: options.partition, row: options.row });
    const begun = await begin(engine, { At: at, Wanted: wanted, Phase: 'copying' }, { entities, manifest });
    const none = { tables: undefined, blobs: undefined, undeclared: [], blocked: 0 };
    const copied = begun.Phase === 'copying' ? await copy(engine, options, { entities, only }) : none;
    const report = { at, snapshot: { id: manifest.id, finishedAt: manifest.finishedAt }, ...copied };
    const build = {
      entities,
      only,
      signal,
      onChecked: (name: string, rows: number) => onProgress?.({ doing: 'building', name, rows }),
    };
    const check = {
      ...build,
      onChecked: (name: string, rows: number) => onProgress?.({ doing: 'checking', name, rows }),
    };
    if (begun.Phase === 'done') return { ...report, wasDone: true, settled: NOTHING, erased: NOBODY, findings: [] };
    await writeMark(storage, { ...begun, Phase: 'copied' });
    onProgress?.({ doing: 'settling', name: '', rows: 0 });
    await guardModel(engine, entities, undefined);
    const settled = await settleRestored(engine, { source, at, entities, signal });
    await buildDerived(engine, build);
    const erased = await eraseAgain(engine, options);
    const findings = await checkRestored(engine, check);
    await writeMark(storage, { ...begun, Phase: 'done' });
    return { ...report, wasDone: false, settled, erased, findings };
  },
);

const NOTHING: Settled = { tombstones: 0, finished: 0, undone: 0, rekeyed: 0, left: [] };
const NOBODY: ErasedAgain = { subjects: 0, deleted: 0, changed: 0, failed: [], isLogRead: true };

function findEntity({ list }: LinkedModel, { entity: name, partition, row }: RestoreOptions): Entity | undefined {
  if (row !== undefined && partition === undefined)
    throw new RowkeyError('invalid-input', 'A row needs its partition.', { field: 'row' });
  if (name === undefined && partition !== undefined)
    throw new RowkeyError('invalid-input', 'A partition needs its entity.', { field: 'partition' });
  const found = list.find((entity) => entity.name === name);
  if (name === undefined || found) return found;
  throw new RowkeyError('invalid-input', `Entity "${name}" not found.`, {
    field: 'entity',
    accepted: list.map((entity) => entity.name).join(', '),
  });
}

/** Returns how far an earlier restore of the same cut is. Throws `wrong-operation` if the target has other rows. */
async function begin(
  { storage, now }: Engine,
  mark: Mark,
  { entities, manifest }: { readonly entities: readonly Entity[]; readonly manifest: Manifest },
): Promise<Mark> {
  const found = await readRow(storage, MARK);
  const earlier = found && Mark.parse(found.properties);
  if (earlier && earlier.At === mark.At && earlier.Wanted === mark.Wanted) return earlier;
  const isIn = tablesInBackup(entities);
  const isOwnRow = ownRowsOf([...entities, ...OWN_ENTITIES]);
  const declared = await tablesIn({ storage, resources: resourcesOf(entities, now()) }, ...accountsOf(storage));
  const there = new Set(await listTables(storage, ''));
  for (const table of new Set([...declared, ...Object.keys(manifest.tables)])) {
    if (table === SYSTEM_TABLE || !there.has(table) || !isIn(table)) continue;
    if (!(await hasRows(storage, table, isOwnRow))) continue;
    const why = earlier ? ` They are of the restore to ${earlier.At}.` : '';
    throw new RowkeyError(
      'wrong-operation',
      `The table ${storage.table(table).tableName} has rows of the app.${why} Restore to a place where the app has none.`,
    );
  }
  await writeMark(storage, mark);
  return mark;
}

const PAGE_SIZE = 1_000;

async function hasRows(storage: Storage, table: string, isOwnRow: (row: Row) => boolean): Promise<boolean> {
  for (let after: Row | undefined; ; ) {
    const { rows, more } = await scanTable(storage, { table, after, limit: PAGE_SIZE });
    if (rows.some((row) => isOfApp(row) && isOwnRow(row))) return true;
    after = rows.at(-1);
    if (!more || !after) return false;
  }
}

async function writeMark(storage: Storage, mark: Mark): Promise<void> {
  const { row, ...where } = MARK;
  const properties = { EntityType: ROW_TYPES.restore, ...mark };
  await submit(storage, { ...where, actions: [{ kind: 'upsert', row, properties }], isRepeatable: true });
}

interface Copied {
  readonly tables: readonly RestoredTable[];
  readonly blobs: RestoredBlobs;
  readonly undeclared: readonly string[];
  readonly blocked: number;
}

async function copy(
  engine: Engine,
  options: RestoreOptions,
  { entities, only }: { readonly entities: readonly Entity[]; readonly only: Entity | undefined },
): Promise<Copied> {
  const { storage } = engine;
  const { source, at, partition, row, signal, onProgress } = options;
  const one = partition === undefined || row === undefined ? undefined : rowsOf([{ partition, row }], only);
  const blocked = only ? 0 : await blockAgain(engine, options);
  const names = new Set<string>();
  const { rows } = await readState(source, at, { ...wantedOf(entities, only), partition, entities: one });
  const onRows = (name: string, count: number) => onProgress?.({ doing: 'copying', name, rows: count });
  const tables = await restoreRows(storage, noteBlobs(rows, names), { signal, onRows });
  const blobs = await restoreBlobs(storage, { backup: source.backup, names, isWhole: !only, signal });
  const known = [...entities, ...OWN_ENTITIES].flatMap(tablesOf);
  const undeclared = tables.map(({ table }) => table).filter((table) => !known.some((own) => isTableOf(own, table)));
  return { tables, blobs, undeclared, blocked };
}

const tablesOf = (entity: Entity) => withArchives([entity]).map(({ table, period }) => ({ table, period }));

function wantedOf(entities: readonly Entity[], only: Entity | undefined): WantedRows {
  const isIn = tablesInBackup(entities);
  const own = only && tablesOf(only);
  return {
    hasTable: (table) =>
      table !== SYSTEM_TABLE && isIn(table) && (own === undefined || own.some((each) => isTableOf(each, table))),
  };
}

/** Blocks the users who are blocked in the newest state: who was blocked after the cut stays blocked. Returns their number. */
async function blockAgain(
  { storage, now }: Engine,
  { source, at }: Pick<RestoreOptions, 'source' | 'at'>,
): Promise<number> {
  const today = toTime(now()) ?? at;
  const newest = today > at ? today : at;
  const { rows } = await readState(source, newest, { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.blocked });
  const [restored] = await restoreRows(storage, rows, { isPart: true });
  return restored?.rows ?? 0;
}
