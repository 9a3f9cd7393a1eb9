import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { pMapIterable } from 'p-map';
import { z } from 'zod';
import type { Values } from '../../../lib/base/values.ts';
import { Attachment } from '../../../lib/define/declaration/attachment.ts';
import type { LinkedModel } from '../../../lib/define/define-model.ts';
import { listLost } from '../lost-fields.ts';
import { readLines } from '../ndjson-rows.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from '../progress.ts';
import { ask, formatProblem, readNextPage, readProblem, type Target } from '../target.ts';
import { computedFields, formatRow, type Kind, listKinds, rowPath, scanPath } from './kinds.ts';
import { FILES, type FileReference, fromLines, MANIFEST, type Manifest, NOT_EXPORTED, sha256 } from './manifest.ts';
import { type Member, writeTar } from './tar-file.ts';

const PAGE = 200;
const FILES_CONCURRENCY = 8;
/** Bounds the rows, and the files, that are in memory at a time. */
const PART_CHARACTERS = 4_000_000;
const PART_ROWS = 5_000;
const PART_FILE_BYTES = 32_000_000;

/** Exports everything that the token may read into a tar file. */
export async function exportAll(model: LinkedModel, target: Target, file: string): Promise<void> {
  const exported = new Export(model, target);
  const { rows, files, missing } = exported;
  const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, one) => sum + one, 0);
  const progress = startProgress({ rows: () => total(rows), describe: () => `${total(files)} files` });
  const { signal } = progress;
  const beside = `${file}.new`;
  try {
    await writeTar(beside, exported.members(progress.say), { signal, isZipped: file.endsWith('.gz') });
    // Renamed last, so that the file is never incomplete.
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    if (!signal.aborted) throw error;
    process.exitCode = INTERRUPTED_EXIT_CODE;
  } finally {
    progress.stop();
  }
  if (signal.aborted) return console.log(`Interrupted after ${total(rows)} rows: the file ${file} is not written.`);
  console.log(`Exported ${total(rows)} rows and ${total(files)} files of ${rows.size} kinds to ${file}.`);
  console.log(NOT_EXPORTED);
  if (missing.length === 0) return;
  console.error(`The file is not complete:\n${missing.map((one) => `- ${one}`).join('\n')}`);
  process.exitCode = 1;
}

const Row = z.record(z.string(), z.unknown());
const Page = z.object({ items: z.array(Row) });
const Archives = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      entity: z.string(),
      period: z.string(),
      rows: z.int(),
      state: z.string(),
      hash: z.string(),
    }),
  ),
});
const PeriodTables = z.object({
  items: z.array(z.object({ entity: z.string(), table: z.string(), period: z.string(), isDue: z.boolean() })),
});
const Link = z.object({ url: z.string() });

interface ExportedRow {
  readonly row: Values;
  readonly files: readonly Member[];
}

class Export {
  readonly #model: LinkedModel;
  readonly #target: Target;
  readonly rows = new Map<string, number>();
  readonly files = new Map<string, number>();
  readonly missing: string[] = [];
  readonly #members: Manifest['members'] = {};
  readonly #periodArchives: Manifest['periodArchives'] = {};
  #filesSoFar = 0;

  constructor(model: LinkedModel, target: Target) {
    this.#model = model;
    this.#target = target;
  }

  async *members(say: (text: string) => void): AsyncGenerator<Member> {
    const kinds = listKinds(this.#model);
    for (const kind of kinds) yield* this.#kind(kind, say);
    if (this.#model.list.some(({ period }) => period?.archiveTo)) yield* this.#archives();
    const described = kinds
      .filter(({ name }) => this.rows.has(name))
      .map(({ name, entity: { version, columns } }) => {
        const counts = { rows: this.rows.get(name) ?? 0, files: this.files.get(name) ?? 0 };
        return [name, { version, fields: Object.keys(columns), ...counts }] as const;
      });
    const manifest: Manifest = {
      format: 'rowkey-export',
      formatVersion: 1,
      exportedAt: new Date().toISOString(),
      kinds: Object.fromEntries(described),
      periodArchives: this.#periodArchives,
      members: this.#members,
      missing: this.missing,
    };
    yield { name: MANIFEST, bytes: new TextEncoder().encode(`${JSON.stringify(manifest, undefined, 2)}\n`) };
  }

  /** The rows of a kind in parts, each with the files of its rows after it. */
  async *#kind(kind: Kind, say: (text: string) => void): AsyncGenerator<Member> {
    const parts = new Parts(`rows/${kind.name}`);
    for await (const page of this.#pages(kind)) {
      const read = pMapIterable(page, (values) => this.#readRow(kind, values), { concurrency: FILES_CONCURRENCY });
      for await (const found of read) {
        if (!found) continue;
        const { row, files } = found;
        for (const field of Object.keys(row).filter((name) => row[name] === null)) {
          this.missing.push(`${formatRow(kind, row)}: "${field}" cannot be read, and is null.`);
          say(`${formatRow(kind, row)}: "${field}" cannot be read.`);
        }
        add(this.rows, kind.name, 1);
        add(this.files, kind.name, files.length);
        yield* this.#written(parts.add(JSON.stringify(row), files));
      }
    }
    yield* this.#written(parts.end());
  }

  *#written(members: Iterable<Member & { readonly rows?: number }>): Generator<Member> {
    for (const { rows, ...member } of members) {
      if (rows !== undefined) this.#members[member.name] = { rows, sha256: sha256(member.bytes) };
      yield member;
    }
  }

  async *#pages(kind: Kind): AsyncGenerator<Values[]> {
    let next: string | undefined = scanPath(this.#target.root, kind, PAGE);
    for (let isFirst = true; next; isFirst = false) {
      const response: Response = await ask(this.#target, next);
      if (!response.ok) {
        const why = formatProblem(await readProblem(response));
        if (!isFirst) throw new Error(`${next.split('?')[0]} returned ${response.status}: ${why}`);
        this.missing.push(`${kind.name} cannot be read (${response.status}): ${why}`);
        return;
      }
      if (isFirst) this.rows.set(kind.name, 0);
      yield Page.parse(await response.json()).items;
      next = readNextPage(response);
    }
  }

  /** Returns undefined for a row that was deleted meanwhile. */
  async #readRow(kind: Kind, values: Values): Promise<ExportedRow | undefined> {
    const { entity } = kind;
    if (entity.series) return { row: toSparse(entity.series.first, values), files: [] };
    const computed = computedFields(kind);
    const row: Record<string, unknown> = {};
    const references: Record<string, FileReference> = {};
    const files: Member[] = [];
    const path = rowPath(this.#target.root, kind, values);
    for (const [field, value] of Object.entries(values)) {
      if (computed.includes(field)) continue;
      if (!(field in entity.attachments) || value === null) {
        row[field] = value;
        continue;
      }
      const response = await ask(this.#target, `${path}/${field}`);
      if (response.ok) {
        const bytes = await response.bytes();
        this.#filesSoFar += 1;
        const file = `files/${kind.name}/${String(this.#filesSoFar).padStart(8, '0')}`;
        const type = response.headers.get('content-type') ?? Attachment.parse(value).type;
        references[field] = { file, type, bytes: bytes.length, sha256: sha256(bytes) };
        files.push({ name: file, bytes });
      } else if (response.status === 404) return this.#readAgain(kind, values);
      // The file alone is lost: the row is exported without it.
      else if (response.status === 503) row[field] = null;
      else
        throw new Error(`${path}/${field} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
    }
    for (const field of listLost(entity, values)) row[field] = null;
    return { row: files.length > 0 ? { ...row, [FILES]: references } : row, files };
  }

  /** The row after a change in the middle of its export. */
  async #readAgain(kind: Kind, values: Values): Promise<ExportedRow | undefined> {
    const { name, entity } = kind;
    // A child in an archive is deleted with its parent alone.
    if (name.includes('/')) return undefined;
    const path = rowPath(this.#target.root, { name, entity, isArchived: false }, values);
    const response = await ask(this.#target, path);
    return response.ok ? this.#readRow(kind, Row.parse(await response.json())) : undefined;
  }

  /** The archives of periods past retention. */
  async *#archives(): AsyncGenerator<Member> {
    const { root } = this.#target;
    const path = `${root}/operations/period-archives`;
    const { items } = Archives.parse(await this.#get(path));
    const verified = items.filter(({ state }) => state === 'verified');
    for (const { name } of items.filter((one) => !verified.includes(one)))
      this.missing.push(`The archive ${name} is not finished: export again when it is.`);
    for (const { name, rows, hash } of verified) {
      const body = JSON.stringify({ name });
      const headers = { 'content-type': 'application/json' };
      const granted = await ask(this.#target, `${path}/grants`, { method: 'POST', headers, body });
      if (!granted.ok) {
        const why = formatProblem(await readProblem(granted));
        this.missing.push(`The archive ${name} cannot be read (${granted.status}): ${why}`);
        continue;
      }
      const { body: content } = await fetch(Link.parse(await granted.json()).url);
      if (!content) throw new Error(`The archive ${name} cannot be downloaded.`);
      const parts = new Parts(`period-archives/${name}`);
      const source = Readable.fromWeb(content as Parameters<typeof Readable.fromWeb>[0]);
      for await (const { bytes } of readLines(source.pipe(createGunzip()), Number.MAX_SAFE_INTEGER))
        if (bytes && bytes.length > 0) yield* this.#written(parts.add(new TextDecoder().decode(bytes), []));
      yield* this.#written(parts.end());
      this.#periodArchives[name] = { rows, hash };
    }
    const tables = PeriodTables.parse(await this.#get(`${root}/operations/period-tables`)).items;
    const toArchive = this.#model.list.filter(({ period }) => period?.archiveTo).map(({ name }) => name);
    for (const { table, entity, period } of tables.filter(({ isDue }) => isDue))
      if (toArchive.includes(entity) && !verified.some((one) => one.entity === entity && one.period === period))
        this.missing.push(
          `The table ${table} is past retention and not archived yet: export again after the next full hour.`,
        );
  }

  async #get(path: string): Promise<unknown> {
    const response = await ask(this.#target, path);
    if (response.ok) return response.json();
    throw new Error(`${path} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
  }
}

/** Collects lines and the files that belong to them, up to what fits into memory. */
class Parts {
  readonly #folder: string;
  #lines: string[] = [];
  #characters = 0;
  #files: Member[] = [];
  #fileBytes = 0;
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the members that are complete, the one with rows first. */
  add(line: string, files: readonly Member[]): Iterable<Member & { readonly rows?: number }> {
    this.#lines.push(line);
    this.#characters += line.length;
    this.#files.push(...files);
    this.#fileBytes += files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    const isFull =
      this.#characters >= PART_CHARACTERS || this.#lines.length >= PART_ROWS || this.#fileBytes >= PART_FILE_BYTES;
    return isFull ? this.end() : [];
  }

  end(): Iterable<Member & { readonly rows?: number }> {
    if (this.#lines.length === 0) return [];
    this.#count += 1;
    const name = `${this.#folder}/${String(this.#count).padStart(6, '0')}.ndjson`;
    const part = [{ name, bytes: fromLines(this.#lines), rows: this.#lines.length }, ...this.#files];
    this.#lines = [];
    this.#characters = 0;
    this.#files = [];
    this.#fileBytes = 0;
    return part;
  }
}

/** The counts by slot, without zeros: a series may have far more slots than counts. */
export function toSparse(first: number, { counts, ...key }: Values): Values {
  if (!Array.isArray(counts)) return { ...key, counts: null };
  const some = counts.flatMap((count, index) => (count === 0 ? [] : [[String(first + index), count]]));
  return { ...key, counts: Object.fromEntries(some) };
}

function add(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}
