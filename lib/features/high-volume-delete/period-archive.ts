import { hash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { jsonText } from '../../base/json-text.ts';
import { hasWrongValue, omit, type Values } from '../../base/values.ts';
import { isSealed } from '../../define/codec/entity-codec.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import { entityIn } from '../../engine/read/entity-rows.ts';
import { toPlain } from '../../engine/write/stored-values.ts';
import { PERIOD_ARCHIVES_CONTAINER } from '../../storage/blob-owner.ts';
import {
  type BlobAddress,
  commitBlocks,
  deleteBlob,
  listBlocks,
  listContainer,
  type Metadata,
  replaceMetadata,
  stageBlock,
  streamBlob,
} from '../../storage/blobs.ts';
import { type Row, readRow, scanTable } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * High volume delete pattern: the rows of a table are archived before the table is dropped.
 *
 *   partial    read the next rows -> stage a block with them -> commit the blocks, with the last row in the metadata; repeat
 *   complete   read the whole blob back, and compare the number and the hash of its lines
 *   verified   the table may be dropped
 *
 * Each commit is conditional on the ETag of the one before, so of two concurrent runs only one continues. A run that ends or
 * dies is continued from the last commit if the table still has the last row that was archived. Otherwise the table was created
 * again, and another archive is begun. A verified archive is never changed: a table that still exists then, or again, gets
 * another archive. So a row may be archived twice, and is never dropped without an archive.
 *
 * No row changes meanwhile, because writes to periods past retention are rejected.
 */

/** Bounds the memory of a run. A blob has at most 50,000 blocks. */
const BLOCK_CHARACTERS = 4_194_304;
const BLOCK_ROWS = 10_000;
const ROWS_PER_CALL = 1_000;

const compress = promisify(gzip);

export const State = z.enum(['partial', 'complete', 'verified']);
const LastRow = z.tuple([z.string(), z.string(), z.string()]);

function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The metadata of an archive. */
const Progress = z.object({
  state: State,
  rows: z.coerce.number().int(),
  /** See `addToHash`. Empty for no rows. */
  hash: z.string(),
  /**
   * The partition key, the row key and the `WriteId` of the last row, encoded as metadata cannot have all characters. A move to another
   * account changes the ETag. A row that a client has written with a grant has no `WriteId`.
   */
  lastrow: z
    .string()
    .transform((text) => LastRow.safeParse(parseIfJson(Buffer.from(text, 'base64url').toString())).data)
    .optional(),
});
type Progress = z.infer<typeof Progress>;

export interface PeriodArchive extends Progress, BlobAddress {
  readonly entity: string;
  readonly period: string;
  /** 1, and further numbers if the table existed again. */
  readonly part: number;
  /** Empty for an archive that is not stored yet. */
  readonly etag: string;
  /** In bytes, compressed. */
  readonly length: number;
  readonly modifiedAt: number;
}

export const ARCHIVE_NAME = /^([a-z0-9]+)\/(\d{4}(?:-\d\d){0,2})\/(\d+)\.ndjson\.gz$/;

/** Lists the archives of an entity, or of all entities, in the order of their names. */
export async function listPeriodArchives(storage: Storage, entity?: string): Promise<PeriodArchive[]> {
  const prefix = entity === undefined ? '' : `${entity}/`;
  const archives: PeriodArchive[] = [];
  for await (const { metadata, ...blob } of listContainer(storage, PERIOD_ARCHIVES_CONTAINER, prefix)) {
    const [, name, period, part] = ARCHIVE_NAME.exec(blob.name) ?? [];
    const progress = Progress.safeParse(metadata);
    // Another program wrote this blob.
    if (name === undefined || period === undefined || !progress.success) continue;
    archives.push({ ...blob, ...progress.data, entity: name, period, part: Number(part) });
  }
  return archives;
}

interface ArchiveOptions {
  readonly table: string;
  readonly period: string;
  /** The archives of the entity. */
  readonly archives: readonly PeriodArchive[];
  /** In milliseconds. */
  readonly until: number;
}

/**
 * Archives the rows of a table. Returns true if the table may be dropped: all its rows are in a verified archive. Returns false
 * after `until`, or if another run is archiving the table; the next run continues.
 */
export async function archivePeriod(engine: Engine, entity: Entity, options: ArchiveOptions): Promise<boolean> {
  const { table, until } = options;
  const found = await beginOrContinue(engine, entity, options);
  const archive = found.state === 'partial' ? await addRows(engine, entity, found, { table, until }) : found;
  if (!archive || archive.rows === 0) return archive !== undefined;
  if (!(await verify(engine, archive, until))) return false;
  const metadata = toMetadata({ ...archive, state: 'verified' });
  return (await replaceMetadata(engine.storage, archive, { metadata, etag: archive.etag })) !== undefined;
}

/** The next lines of an archive that another instance has exported. */
interface ExportedLines {
  readonly name: string;
  /** The number of lines before them. */
  readonly after: number;
  readonly lines: readonly string[];
  /** True if no line follows: the archive is then verified. */
  readonly isLast: boolean;
  /** In milliseconds. */
  readonly until: number;
}

/**
 * Adds the lines to an archive, which begins with the first ones. Lines that do not follow the stored ones change nothing, so a request may
 * be repeated. Returns the archive as it is then; undefined if another request changed it.
 */
export async function addExportedLines(
  engine: Engine,
  entity: Entity,
  { name, after, lines, isLast, until }: ExportedLines,
): Promise<PeriodArchive | undefined> {
  const [, , period = '', part] = ARCHIVE_NAME.exec(name) ?? [];
  const none = emptyArchive(entity, { period, part: Number(part) });
  const stored = (await listPeriodArchives(engine.storage, entity.name)).find((each) => each.name === name);
  let archive = stored ?? none;
  if (archive.state === 'partial' && archive.rows === after && (lines.length > 0 || (isLast && after > 0))) {
    const blocks = archive.etag ? await listBlocks(engine.storage, archive) : [];
    const state = isLast ? ('complete' as const) : ('partial' as const);
    const added = await addBlock(engine, { ...archive, state, lastrow: IMPORTED }, { lines, blocks });
    if (!added) return undefined;
    archive = added;
  }
  if (archive.state !== 'complete' || !(await verify(engine, archive, until))) return archive;
  const metadata = toMetadata({ ...archive, state: 'verified' });
  const etag = await replaceMetadata(engine.storage, archive, { metadata, etag: archive.etag });
  return etag === undefined ? undefined : { ...archive, state: 'verified', etag };
}

/** In place of the last row: an archive of another instance has no table here, with which the timer would continue it. */
const IMPORTED: Progress['lastrow'] = ['', '', 'imported'];

/** Commits further lines. Returns undefined if another writer changed the archive. */
async function addBlock(
  { storage }: Engine,
  archive: PeriodArchive,
  { lines, blocks }: { readonly lines: readonly string[]; readonly blocks: string[] },
): Promise<PeriodArchive | undefined> {
  const rows = archive.rows + lines.length;
  const added = { ...archive, rows, hash: lines.reduce(addToHash, archive.hash) };
  if (lines.length > 0) {
    const id = Buffer.from(`${String(blocks.length).padStart(6, '0')}-${randomUUID()}`).toString('base64');
    const bytes = await compress(`${lines.join('\n')}\n`);
    await stageBlock(storage, archive, { id, bytes });
    blocks.push(id);
  }
  const list = { blocks, metadata: toMetadata(added), headers: HEADERS, etag: archive.etag || undefined };
  const etag = await commitBlocks(storage, archive, list);
  return etag === undefined ? undefined : { ...added, etag };
}

function emptyArchive(entity: Entity, { period, part }: Pick<PeriodArchive, 'period' | 'part'>): PeriodArchive {
  const name = `${entity.name}/${period}/${part}.ndjson.gz`;
  const empty = { state: 'partial', rows: 0, hash: '', etag: '', length: 0, modifiedAt: 0 } as const;
  return { container: PERIOD_ARCHIVES_CONTAINER, name, entity: entity.name, period, part, ...empty };
}

/** Deletes unfinished archives of periods that are kept again, because their rows may change. */
export async function deleteUnfinished(storage: Storage, archives: readonly PeriodArchive[]): Promise<void> {
  for (const archive of archives) if (archive.state !== 'verified') await deleteBlob(storage, archive, archive.etag);
}

async function beginOrContinue(
  { storage }: Engine,
  entity: Entity,
  { table, period, archives }: ArchiveOptions,
): Promise<PeriodArchive> {
  const latest = archives
    .filter((archive) => archive.period === period)
    .toSorted((a, b) => a.part - b.part)
    .at(-1);
  if (latest?.lastrow && latest.state !== 'verified') {
    const [partition, row, write] = latest.lastrow;
    const there = await unlessTableMissing(readRow(storage, { table, partition, row, select: ['WriteId'] }), undefined);
    if (there && writeOf(there) === write) return latest;
  }
  return emptyArchive(entity, { period, part: (latest?.part ?? 0) + 1 });
}

/** Returns the complete archive; undefined after `until`, or if another run changed it. */
async function addRows(
  engine: Engine,
  entity: Entity,
  begun: PeriodArchive,
  { table, until }: Pick<ArchiveOptions, 'table' | 'until'>,
): Promise<PeriodArchive | undefined> {
  let archive = begun;
  const blocks = archive.etag ? await listBlocks(engine.storage, archive) : [];
  while (archive.state === 'partial') {
    if (engine.now() >= until) return undefined;
    const read = await unlessTableMissing(readLines(engine, entity, { table, after: archive.lastrow }), undefined);
    if (!read) return undefined;
    const { lines, lastrow = archive.lastrow, isEnd } = read;
    archive = { ...archive, state: isEnd ? 'complete' : 'partial', lastrow };
    // A period without rows needs no archive.
    if (archive.rows + lines.length === 0) continue;
    const added = await addBlock(engine, archive, { lines, blocks });
    if (!added) return undefined;
    archive = added;
  }
  return archive;
}

const HEADERS = { type: 'application/gzip', disposition: 'attachment' };

function toMetadata({ state, rows, hash: sum, lastrow }: Progress): Metadata {
  const last = Buffer.from(JSON.stringify(lastrow)).toString('base64url');
  return { state, rows: String(rows), hash: sum, lastrow: last };
}

/** The hash of some lines is the SHA-256 of the hash of the lines before the last one, followed by the last one. */
function addToHash(before: string, line: string): string {
  return hash('sha256', before + line);
}

interface Lines {
  readonly lines: readonly string[];
  readonly lastrow: Progress['lastrow'];
  readonly isEnd: boolean;
}

/** Reads the rows of one block. */
async function readLines(
  engine: Engine,
  entity: Entity,
  { table, after }: { readonly table: string; readonly after: Progress['lastrow'] },
): Promise<Lines> {
  const [partition = '', row = ''] = after ?? [];
  const { rows, more } = await scanTable(engine.storage, {
    table,
    ...(after ? { after: { partition, row } } : {}),
    limit: BLOCK_ROWS,
    bound: { length: BLOCK_CHARACTERS, rowsPerCall: ROWS_PER_CALL },
  });
  const lines: string[] = [];
  let length = 0;
  let last: Row | undefined;
  for (const each of rows) {
    // A text in a blob is not in the length of its row.
    if (length >= BLOCK_CHARACTERS) break;
    const line = await toLine(engine, entity, each);
    lines.push(line);
    length += line.length;
    last = each;
  }
  const lastrow: Progress['lastrow'] = last && [last.partition, last.row, writeOf(last)];
  return { lines, lastrow, isEnd: !more && lines.length === rows.length };
}

/** Tells the write of a row from that of another row with its key. */
function writeOf({ properties: { WriteId }, etag }: Row): string {
  return typeof WriteId === 'string' ? WriteId : etag;
}

/**
 * An entity as an import accepts it. An encrypted field stays as it is stored, `{ "sealed": … }`. A row that is not such an
 * entity is stored as `{ "row": … }`.
 */
async function toLine(engine: Engine, entity: Entity, row: Row): Promise<string> {
  const values = valuesIfAny(entity, row);
  if (!values) {
    const { partition, row: key, properties } = row;
    const stored = Object.entries(properties).map(([name, value]) => [name, toJson(value)]);
    return jsonText({ row: { PartitionKey: partition, RowKey: key, ...Object.fromEntries(stored) } });
  }
  const sealed = Object.keys(values).filter((field) => isSealed(values[field]));
  // A text whose blob is lost stays a reference.
  const plain = await toPlain(engine, entity, omit(values, sealed), () => undefined);
  return jsonText(omit({ ...values, ...plain }, entity.decidedFields));
}

function valuesIfAny(entity: Entity, row: Row): Values | undefined {
  try {
    const values = entityIn(entity, row)?.values;
    // A line of an entity would have null in place of a value of another type.
    return values && hasWrongValue(values) ? undefined : values;
  } catch {
    // An upgrade throws on a row that no earlier version has written.
    return undefined;
  }
}

/** Converts a property whose type JSON does not have. */
function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}

/** Reads an archive back. Returns false after `until`. Throws if the archive does not have the rows that were written. */
async function verify(engine: Engine, archive: PeriodArchive, until: number): Promise<boolean> {
  const bytes = await streamBlob(engine.storage, archive);
  if (!bytes) return false;
  let rows = 0;
  let sum = '';
  let isLate = false;
  const failure = await pipeline(Readable.from(bytes), createGunzip(), async (text: AsyncIterable<Buffer>) => {
    for await (const line of splitLines(text)) {
      rows += 1;
      sum = addToHash(sum, line);
      isLate = engine.now() >= until;
      if (isLate) return;
    }
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (isLate) return false;
  if (failure !== undefined && !isGzipError(failure)) throw failure;
  if (failure === undefined && rows === archive.rows && sum === archive.hash) return true;
  await deleteBlob(engine.storage, archive, archive.etag);
  throw new Error(
    `The archive ${archive.name} differs from its table: ${rows} of ${archive.rows} rows were read back. The table is kept and archived again.`,
  );
}

function isGzipError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');
}

async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    pieces.push(first);
    for (const other of others) {
      yield pieces.join('');
      pieces = [other];
    }
  }
}
