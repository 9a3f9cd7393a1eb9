import { ROW_TYPES, SYSTEM_PARTITIONS } from '../../lib/base/engine-names.ts';
import { hasCode, RowkeyError } from '../../lib/base/errors.ts';
import { pick, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { indexEntriesOf } from '../../lib/define/places/index-entries.ts';
import type { Engine } from '../../lib/engine/engine.ts';
import { readLive } from '../../lib/engine/read/entity-rows.ts';
import { settleEntries } from '../../lib/engine/reconcile/reconcile.ts';
import { writePartitions } from '../../lib/engine/write/entity-batch.ts';
import { preparePut } from '../../lib/engine/write/entity-write.ts';
import { bulkLoad, canBulkLoad } from '../../lib/operations/bulk-load.ts';
import { timeOf, toTime } from '../../lib/storage/row-journal.ts';
import { type Address, readRow, submit } from '../../lib/storage/rows.ts';
import { SYSTEM_TABLE } from '../../lib/storage/slot-row.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import {
  expectValues,
  type Kind,
  type KindReport,
  newReport,
  readSource,
  reject,
  type SourceReport,
} from './read-source.ts';

/**
 * Copies the entities of a table into the tables of the app.
 *
 *   first run:   Began -> one scan, loaded in bulk -> Mark
 *   later runs:  a scan of the rows since Mark, put one by one -> Mark
 *
 * A row in the system table of the app has the state of each entity. The mark is the greatest time of a row that the last scan has seen, and no
 * later than the scan has begun: a row may change right after a long scan has read it. Clocks of two accounts differ, so a scan begins earlier than the mark.
 *
 * A reference may be to a row that is copied later: the consistency check reports those that are left.
 *
 * A run that died is repeated. After a load that took several runs, a scan since its beginning brings what changed between them.
 */

/** How much earlier than its mark a scan begins. */
const MARGIN_MS = 5 * 60_000;
/** Rows that are put in a group. */
const GROUP = 1_000;

/** What was done with the rows of one kind. */
interface Copied {
  created: number;
  /** Replaced by other values. */
  changed: number;
  /** Stored already. */
  unchanged: number;
}

export interface KindCopied extends Copied {
  readonly source: KindReport;
}

export interface TableCopied {
  readonly source: SourceReport;
  readonly kinds: readonly KindCopied[];
  /** The instant since which rows were read. Undefined for all rows. */
  readonly since: string | undefined;
}

export interface CopyOptions {
  readonly from: Storage;
  readonly engine: Engine;
  /** The kinds of one table. */
  readonly kinds: readonly Kind[];
  /** `last`: since the last run; else since this instant, or `''` for all rows. */
  readonly since: string;
  readonly signal?: AbortSignal | undefined;
  readonly onRows?: ((rows: number) => void) | undefined;
}

/** Returns what the scans have found and done: that of the first load, and that of the changes since. Throws `storage-unavailable`: run it again. */
export async function copyTable({ since, ...options }: CopyOptions): Promise<TableCopied[]> {
  const { from, engine, kinds } = options;
  const states = await Promise.all(kinds.map((kind) => begin(engine.storage, from, kind)));
  if (since !== 'last') return [await copyChanges(options, { since, states })];
  const fresh = states.filter(({ mark }) => mark === undefined);
  const done: TableCopied[] = [];
  if (fresh.length > 0) done.push(await loadAll(options, fresh));
  const again = states.filter((state) => state.mark !== undefined || state.began < state.startedAt);
  if (again.length === 0) return done;
  const earliest = withMargin(again.map(({ mark, began }) => mark ?? began));
  const changes = await copyChanges(options, { since: earliest, states: again });
  for (const { source, created, changed, unchanged } of changes.kinds) {
    // A row that changed between two runs of the load has the key of the entity that an earlier run created.
    const loaded = done.flatMap((one) => one.kinds).find((one) => one.source.name === source.name);
    if (loaded && created + changed + unchanged > 0) dropStored(loaded.source, changes.stored);
  }
  return [...done, changes];
}

function dropStored(report: KindReport, stored: ReadonlySet<string>): void {
  const left = report.rejections.filter(({ key }) => !stored.has(`${report.name} ${key}`));
  report.rejected -= report.rejections.length - left.length;
  report.rejections.splice(0, Number.POSITIVE_INFINITY, ...left);
}

async function loadAll(
  { from, engine, signal, onRows }: Omit<CopyOptions, 'since'>,
  states: readonly State[],
): Promise<TableCopied> {
  const kinds = states.map(({ kind }) => kind);
  const source = newReport(kinds[0]?.from.table ?? '', kinds);
  const done = kinds.map((kind): KindCopied => ({ ...NONE, source: ofKind(source, kind) }));
  await feed(readSource(from, kinds, { report: source, signal, onRows }), kinds, async (kind, rows) => {
    const counts = done[kinds.indexOf(kind)];
    if (counts) await load(engine, kind.to, rows, { counts, signal });
  });
  for (const { kind, began } of states) {
    // What changes while the scan reads is read again, and what was rejected is tried again.
    const { earliest = began } = ofKind(source, kind);
    await note(engine.storage, kind, { Mark: earlier(earlier(source.latest, began), earliest) });
  }
  return { source, kinds: done, since: undefined };
}

async function copyChanges(
  { from, engine, signal, onRows }: Omit<CopyOptions, 'since'>,
  { since, states }: { readonly since: string; readonly states: readonly State[] },
): Promise<TableCopied & { readonly stored: ReadonlySet<string> }> {
  const kinds = states.map(({ kind }) => kind);
  const source = newReport(kinds[0]?.from.table ?? '', kinds);
  const stored = new Set<string>();
  const done = kinds.map((kind): KindCopied => ({ ...NONE, source: ofKind(source, kind) }));
  const pages = readSource(from, kinds, { report: source, since: since || undefined, signal, onRows });
  for await (const page of pages)
    for (const [at, kind] of kinds.entries()) {
      const counts = done[at];
      if (counts)
        for (const key of await put(engine, kind.to, page.get(kind) ?? [], counts, {
          isAfterLoad: states[at]?.mark === undefined,
        }))
          stored.add(`${kind.to.name} ${key}`);
    }
  for (const state of states) {
    const latest = earlier(source.latest, state.startedAt);
    // What was rejected is tried again.
    if (ofKind(source, state.kind).rejected > 0) continue;
    // A scan that began later than the mark has left out rows.
    const isWhole = since === '' || (state.mark !== undefined && since <= state.mark);
    if (isWhole && latest > (state.mark ?? '')) await note(engine.storage, state.kind, { Mark: latest });
  }
  return { source, kinds: done, since: since || undefined, stored };
}

const NONE: Copied = { created: 0, changed: 0, unchanged: 0 };

function ofKind({ kinds }: SourceReport, { to: { name } }: Kind): KindReport {
  const report = kinds.get(name);
  if (!report) throw new Error(`${name} is not read.`);
  return report;
}

const earlier = (one: string, other: string) => (one < other ? one : other);

/** Calls `work` for each kind with its rows, concurrently. Reads on only as fast as all of them read. */
async function feed(
  pages: AsyncIterable<ReadonlyMap<Kind, readonly Values[]>>,
  kinds: readonly Kind[],
  work: (kind: Kind, rows: AsyncIterable<Values>) => Promise<void>,
): Promise<void> {
  const channels = kinds.map(() => new TransformStream<readonly Values[], readonly Values[]>());
  const writers = channels.map(({ writable }) => writable.getWriter());
  const working = kinds.map(async (kind, at) => {
    const { readable } = channels[at] ?? new TransformStream<readonly Values[], readonly Values[]>();
    await work(kind, flatten(readable));
  });
  const all = Promise.all(working);
  const reading = (async () => {
    for await (const page of pages)
      await Promise.all(kinds.map((kind, at) => writers[at]?.write(page.get(kind) ?? [])));
    await Promise.all(writers.map((writer) => writer.close()));
  })();
  try {
    await Promise.all([all, reading]);
  } catch (error) {
    // Not awaited: a write ends only when its rows are read, or its reader is canceled.
    for (const { readable } of channels) if (!readable.locked) readable.cancel(error).catch(() => undefined);
    for (const writer of writers) writer.abort(error).catch(() => undefined);
    await Promise.allSettled(working);
    throw error;
  }
}

async function* flatten(pages: AsyncIterable<readonly Values[]>): AsyncGenerator<Values> {
  for await (const page of pages) yield* page;
}

interface Loading {
  readonly counts: KindCopied;
  readonly signal?: AbortSignal | undefined;
}

/** Loads an entity that has none in bulk, and puts each one of another. */
async function load(
  engine: Engine,
  entity: Entity,
  rows: AsyncIterable<Values>,
  { counts, signal }: Loading,
): Promise<void> {
  const { source } = counts;
  if (canBulkLoad(entity))
    try {
      const { created, existing } = await bulkLoad(engine, entity, rows, {
        signal,
        leavesReferences: true,
        onRejected: ({ input, error }) => reject(source, formatKey(entity, Object(input)), error, Object(input)),
      });
      counts.created += created;
      counts.unchanged += existing;
      return;
    } catch (error) {
      // It has rows. Nothing of `rows` was read.
      if (!hasCode(error, 'wrong-operation')) throw error;
    }
  let group: Values[] = [];
  for await (const row of rows) {
    group.push(row);
    if (group.length < GROUP) continue;
    await put(engine, entity, group, counts);
    group = [];
  }
  await put(engine, entity, group, counts);
}

/**
 * Creates or replaces entities as a put does, but writes none that is the same already. Returns the keys of those that are stored. Throws
 * `busy` and `storage-unavailable`.
 */
export async function put(
  engine: Engine,
  entity: Entity,
  rows: readonly Values[],
  counts: KindCopied,
  { isAfterLoad = false } = {},
): Promise<readonly string[]> {
  const writes = rows.flatMap((values) => {
    try {
      const key = pick(values, entity.keyFields);
      // A put without a read would write what is the same.
      return { ...preparePut(engine, entity, key, expectValues(entity, values), {}), unread: undefined, row: values };
    } catch (error) {
      if (!(error instanceof RowkeyError)) throw error;
      reject(counts.source, formatKey(entity, values), error, values);
      return [];
    }
  });
  const outcomes = await writePartitions(engine, writes, { leavesReferences: true });
  // A load that died has left entities without their entries, and has not found those whose rows have changed since.
  if (isAfterLoad)
    for (const { address } of writes) {
      const indexEntries = indexEntriesOf(entity, (await readLive(engine, entity, address))?.values);
      await settleEntries(engine, entity, address, { indexEntries, isRepair: true });
    }
  return writes.flatMap((write) => {
    const done = outcomes.get(write);
    const key = formatKey(entity, write.key);
    if (done instanceof RowkeyError) {
      if (done.code === 'busy') throw done;
      reject(counts.source, key, done, write.row);
      return [];
    }
    counts[OUTCOMES[done?.outcome ?? ''] ?? 'unchanged'] += 1;
    return key;
  });
}

const OUTCOMES: Readonly<Record<string, keyof Copied>> = { created: 'created', stored: 'changed' };

export function formatKey(entity: Entity, values: Values): string {
  return entity.keyFields.map((field) => String(values[field])).join('/');
}

interface State {
  readonly kind: Kind;
  /** When the first run began, and this one, by the clock of the app's account. */
  readonly began: string;
  readonly startedAt: string;
  /** Undefined until a first run has read the whole table. */
  readonly mark: string | undefined;
}

const stateOf = ({ to: { name } }: Kind): Address => ({
  table: SYSTEM_TABLE,
  partition: SYSTEM_PARTITIONS.copied,
  row: name,
});

/** What the last run has left. Another source is copied from the beginning. */
async function readState(storage: Storage, from: Storage, kind: Kind) {
  const { url, tableName } = from.table(kind.from.table);
  // Without a signature.
  const source = `${url.split('?')[0]} ${tableName}`;
  const { Source, Began, Mark } = (await readRow(storage, stateOf(kind)))?.properties ?? {};
  const isSame = Source === source;
  return { source, began: isSame ? String(Began) : '', mark: isSame && Mark !== undefined ? String(Mark) : undefined };
}

/** The instant since which the next run reads the rows of these kinds. Undefined for all rows, which are loaded. */
export async function nextSince(storage: Storage, from: Storage, kinds: readonly Kind[]): Promise<string | undefined> {
  const states = await Promise.all(kinds.map((kind) => readState(storage, from, kind)));
  const marks = states.map(({ mark }) => mark);
  return marks.includes(undefined) ? undefined : withMargin(marks.flatMap((mark) => mark ?? []));
}

const withMargin = (times: readonly string[]) => toTime(Date.parse(times.toSorted()[0] ?? '') - MARGIN_MS) ?? '';

/** Notes that a run has begun. */
async function begin(storage: Storage, from: Storage, kind: Kind): Promise<State> {
  const at = stateOf(kind);
  const { source, began, mark } = await readState(storage, from, kind);
  const properties = {
    EntityType: ROW_TYPES.copied,
    Source: source,
    Began: began,
    ...(mark === undefined ? {} : { Mark: mark }),
  };
  const etags = await submit(storage, {
    ...at,
    actions: [{ kind: 'upsert', row: at.row, properties }],
    isRepeatable: true,
  });
  const startedAt = timeOf(etags.get(at.row)) ?? '';
  if (began === '') await note(storage, kind, { Began: startedAt });
  return { kind, began: began || startedAt, startedAt, mark };
}

/** Adds to the state of a kind. */
async function note(storage: Storage, kind: Kind, properties: Readonly<Record<string, string>>): Promise<void> {
  const at = stateOf(kind);
  await submit(storage, { ...at, actions: [{ kind: 'upsert-merge', row: at.row, properties }], isRepeatable: true });
}
