import { stat } from 'node:fs/promises';
import pMap from 'p-map';
import { z } from 'zod';
import { omit, type Values } from '../../../lib/base/values.ts';
import type { LinkedModel } from '../../../lib/define/define-model.ts';
import { type FiledRow, groupIntoBatches, sendBatch } from '../import-batches.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from '../progress.ts';
import { putFile } from '../row-files.ts';
import { ask, formatProblem, readProblem, type Target } from '../target.ts';
import { compareAll } from './compare-all.ts';
import { formatRow, isPast, type Kind, listKinds, rowPath, upgradeRow, writePath } from './kinds.ts';
import { FILES, filesOf, MANIFEST, Manifest, NOT_EXPORTED, parseMemberName, sha256, toLines } from './manifest.ts';
import { readTar } from './tar-file.ts';

const BATCHES_CONCURRENCY = 4;
const SERIES_CONCURRENCY = 8;
/** The counts of one request, whose body has at most 1 MiB. */
const MAX_COUNTS = 20_000;
const MAX_REASONS = 100;
const LINES_CHARACTERS = 4_000_000;
const MAX_LINES = 5_000;

interface ImportAll {
  /** True to write nothing. */
  readonly isComparison: boolean;
}

/**
 * Imports the file of `exportAll`, and compares what is stored then. Rows may refer to rows after them, so those that are rejected are sent
 * again as long as that helps. Nothing is written unless the whole file is as it was exported.
 */
export async function importAll(model: LinkedModel, target: Target, file: string, options: ImportAll): Promise<void> {
  const started = performance.now();
  const { size } = await stat(file).catch(() => {
    throw new Error(`File ${file} not found.`);
  });
  const manifest = await checkFile(file);
  const kinds = new Map(listKinds(model).map((kind) => [kind.name, kind]));
  const unknown = checkKinds(manifest, kinds);
  for (const one of [...manifest.missing, ...unknown]) console.error(`Not imported: ${one}`);
  if (manifest.missing.length + unknown.length > 0) process.exitCode = 1;
  if (!options.isComparison) {
    const counts = { created: 0, stored: 0, unchanged: 0, past: 0, files: 0 };
    let done = 0;
    let bytesRead = 0;
    const total = Object.values(manifest.kinds).reduce((sum, { rows }) => sum + rows, 0);
    const progress = startProgress({
      rows: () => done,
      describe: () => `${counts.files} files`,
      part: () => Math.min(bytesRead / size, total === 0 ? 1 : done / total),
    });
    const { signal } = progress;
    let rejected: Rejected = { count: Number.POSITIVE_INFINITY, kinds: undefined, reasons: [] };
    try {
      for (;;) {
        const pass = new Pass({ target, file, manifest, kinds, signal, only: rejected.kinds, counts });
        const now = await pass.run({
          onRow: () => {
            if (!rejected.kinds) done += 1;
          },
          onBytes: (bytes) => {
            bytesRead = bytes;
          },
        });
        const helped = now.count < rejected.count;
        rejected = now;
        if (now.count === 0 || !helped || signal.aborted) break;
      }
    } finally {
      progress.stop();
    }
    const { created, stored, unchanged, past, files } = counts;
    const took = ((performance.now() - started) / 1_000).toFixed(1);
    const outcomes = `${created} created, ${stored} stored, ${unchanged} unchanged, ${rejected.count} rejected, ${files} files`;
    console.log(`${signal.aborted ? 'Interrupted. ' : ''}${outcomes}, in ${took} s.`);
    for (const reason of rejected.reasons) console.error(reason);
    if (rejected.count > rejected.reasons.length)
      console.error(`And ${rejected.count - rejected.reasons.length} more.`);
    if (past > 0) console.log(`${past} rows are past retention by now, and are not imported.`);
    if (signal.aborted) {
      console.log('Import the file again: what is stored already does not change.');
      process.exitCode = INTERRUPTED_EXIT_CODE;
      return;
    }
    console.log(NOT_EXPORTED);
    if (rejected.count > 0) process.exitCode = 1;
  }
  const differences = await compareAll({ target, file, manifest, kinds });
  if (differences > 0) process.exitCode = 1;
}

/** Reads the whole file, and compares each member with the manifest, which is the last one. Throws if the file was cut or changed. */
async function checkFile(file: string): Promise<Manifest> {
  const found = new Map<string, { rows: number; sha256: string }>();
  const files = new Map<string, string>();
  const changed = (name: string) =>
    new Error(`The file ${file} was changed: its member ${name} differs. Nothing is imported.`);
  let manifest: Manifest | undefined;
  for await (const { name, bytes } of readTar(file)) {
    if (manifest) throw changed(name);
    if (name === MANIFEST) {
      const { success, data } = Manifest.safeParse(parseIfJson(new TextDecoder().decode(bytes)));
      if (!success) throw new Error(`The file ${file} is not an export of this version of Rowkey.`);
      manifest = data;
    } else if (parseMemberName(name)) {
      if (files.size > 0) throw changed([...files.keys()][0] ?? name);
      const lines = toLines(bytes);
      found.set(name, { rows: lines.length, sha256: sha256(bytes) });
      for (const { file: member, sha256: hash } of lines.flatMap((line) => Object.values(filesOf(JSON.parse(line)))))
        files.set(member, hash);
    } else {
      if (files.get(name) !== sha256(bytes)) throw changed(name);
      files.delete(name);
    }
  }
  if (!manifest) throw new Error(`The file ${file} is cut off: it has no ${MANIFEST}. Nothing is imported.`);
  const names = new Set([...found.keys(), ...Object.keys(manifest.members)]);
  for (const name of names) {
    const [one, other] = [found.get(name), manifest.members[name]];
    if (one?.rows !== other?.rows || one?.sha256 !== other?.sha256) throw changed(name);
  }
  for (const name of files.keys()) throw changed(name);
  return manifest;
}

function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a sentence for each kind that the model lacks. Throws if the file is of a later version of the model. */
function checkKinds({ kinds: exported, periodArchives }: Manifest, kinds: ReadonlyMap<string, Kind>): string[] {
  const missing: string[] = [];
  for (const [name, { version, rows }] of Object.entries(exported)) {
    const kind = kinds.get(name);
    if (!kind) missing.push(`${rows} rows of ${name}, which the model does not have.`);
    else if (version > kind.entity.version)
      throw new Error(
        `The file has version ${version} of ${name}, and the model version ${kind.entity.version}. Import it into the model that exported it, or a later one.`,
      );
  }
  for (const name of Object.keys(periodArchives))
    if (!kinds.get(name.split('/')[0] ?? '')?.entity.period?.archiveTo)
      missing.push(`The archive ${name}, for which the model has no entity.`);
  return missing;
}

interface Rejected {
  readonly count: number;
  /** The kinds of the rejected rows; undefined before the first pass. */
  readonly kinds: ReadonlySet<string> | undefined;
  readonly reasons: readonly string[];
}

interface PassOptions {
  readonly target: Target;
  readonly file: string;
  readonly manifest: Manifest;
  readonly kinds: ReadonlyMap<string, Kind>;
  readonly signal: AbortSignal;
  /** The kinds to import; undefined for all. */
  readonly only: ReadonlySet<string> | undefined;
  readonly counts: Record<'created' | 'stored' | 'unchanged' | 'past' | 'files', number>;
}

/** One reading of the file. */
class Pass {
  readonly #options: PassOptions;
  readonly #reasons: string[] = [];
  readonly #kinds = new Set<string>();
  #rejected = 0;
  /** Where the files of the rows that were read last belong. */
  readonly #files = new Map<
    string,
    { readonly kind: Kind; readonly row: Values; readonly field: string; readonly isNew: boolean }
  >();
  readonly #archived = new Map<string, number>();

  constructor(options: PassOptions) {
    this.#options = options;
  }

  async run({ onRow, onBytes }: { onRow: () => void; onBytes: (bytes: number) => void }): Promise<Rejected> {
    const { file, kinds, only, signal, manifest } = this.#options;
    const uploads: (() => Promise<void>)[] = [];
    const upload = async () => {
      await pMap(uploads.splice(0), (send) => send(), { concurrency: BATCHES_CONCURRENCY });
    };
    for await (const { name, bytes } of readTar(file, onBytes)) {
      if (signal.aborted) break;
      const member = parseMemberName(name);
      if (!member) {
        uploads.push(() => this.#putFile(name, bytes));
        if (uploads.length === BATCHES_CONCURRENCY) await upload();
        continue;
      }
      await upload();
      this.#files.clear();
      if ('periodArchive' in member) {
        if (!only) await this.#addToArchive(member.periodArchive, toLines(bytes));
        continue;
      }
      const kind = kinds.get(member.kind);
      if (!kind || (only && !only.has(kind.name))) continue;
      const version = manifest.kinds[kind.name]?.version ?? kind.entity.version;
      const rows = toLines(bytes).map((line) => JSON.parse(line) as Values);
      if (kind.entity.series) await this.#setCounts(kind, rows, onRow);
      else await this.#putRows(kind, rows, { version, onRow });
    }
    await upload();
    return { count: this.#rejected, kinds: this.#kinds, reasons: this.#reasons };
  }

  #reject(kind: Kind, row: Values, why: string): void {
    this.#rejected += 1;
    this.#kinds.add(kind.name);
    if (this.#reasons.length < MAX_REASONS) this.#reasons.push(`${formatRow(kind, row)}: ${why}`);
  }

  async #putRows(kind: Kind, rows: readonly Values[], { version, onRow }: { version: number; onRow: () => void }) {
    const { target, counts, signal } = this.#options;
    const { entity } = kind;
    const isFirst = !this.#options.only;
    const upgraded = async function* (pass: Pass): AsyncGenerator<FiledRow> {
      for (const [line, exported] of rows.entries()) {
        if (isPast(entity, exported)) {
          if (isFirst) counts.past += 1;
          onRow();
          continue;
        }
        try {
          yield { line, values: upgradeRow(kind, exported, version), files: [] };
        } catch (error) {
          pass.#reject(kind, exported, error instanceof Error ? error.message : String(error));
        }
      }
    };
    const receiver = { ...target, entity, source: '', path: writePath(target.root, kind) };
    await pMap(
      groupIntoBatches(entity, upgraded(this)),
      async (batch) => {
        if (signal.aborted) return;
        const put = batch.map((row) => ({ ...row, values: omit(row.values, [FILES]) }));
        const results = await sendBatch(receiver, put);
        for (const [index, { values }] of batch.entries()) {
          const { status = 0, problem } = results[index] ?? {};
          onRow();
          if (status !== 201 && status !== 200 && status !== 304) {
            this.#reject(kind, values, problem ? formatProblem(problem) : 'the API returned no result for this row');
            continue;
          }
          if (isFirst || status !== 304) counts[OUTCOMES[status]] += 1;
          for (const [field, { file }] of Object.entries(filesOf(values)))
            this.#files.set(file, { kind, row: values, field, isNew: status === 201 });
        }
      },
      { concurrency: BATCHES_CONCURRENCY },
    );
  }

  async #putFile(name: string, bytes: Uint8Array): Promise<void> {
    const found = this.#files.get(name);
    // Its row was rejected.
    if (!found) return;
    const { kind, row, field, isNew } = found;
    const path = `${rowPath(this.#options.target.root, kind, row)}/${field}`;
    const content = new Blob([new Uint8Array(bytes)]);
    const outcome = await putFile(this.#options.target, path, { field, name: field, content }, { isNew });
    if (typeof outcome !== 'string') this.#reject(kind, row, outcome.reason);
    else if (outcome === 'uploaded') this.#options.counts.files += 1;
  }

  /** Sets every count that is not zero. A series without one gets a zero, so that it exists. */
  async #setCounts(kind: Kind, rows: readonly Values[], onRow: () => void): Promise<void> {
    const { target, counts: totals, signal } = this.#options;
    const { first } = kind.entity.series ?? { first: 0 };
    const headers = { 'content-type': 'application/json' };
    await pMap(
      rows,
      async (row) => {
        if (signal.aborted) return;
        onRow();
        if (isPast(kind.entity, row)) {
          totals.past += 1;
          return;
        }
        const entries = Object.entries(Object(row.counts));
        const given = entries.length > 0 ? entries : [[String(first), 0] as const];
        for (let start = 0; start < given.length; start += MAX_COUNTS) {
          const body = JSON.stringify({ counts: Object.fromEntries(given.slice(start, start + MAX_COUNTS)) });
          const response = await ask(target, rowPath(target.root, kind, row), { method: 'PATCH', headers, body });
          if (!response.ok) return this.#reject(kind, row, formatProblem(await readProblem(response)));
        }
        totals.stored += 1;
      },
      { concurrency: SERIES_CONCURRENCY },
    );
  }

  /** Adds the lines of a part to the archive of a period, unless it has them already. */
  async #addToArchive(name: string, lines: readonly string[]): Promise<void> {
    const { target, manifest, kinds } = this.#options;
    if (!kinds.get(name.split('/')[0] ?? '')?.entity.period?.archiveTo) return;
    const path = `${target.root}/operations/period-archives/lines`;
    const total = manifest.periodArchives[name]?.rows ?? 0;
    let before = this.#archived.get(name) ?? 0;
    for (const some of chunksOf(lines)) {
      const isLast = before + some.length === total;
      const body = JSON.stringify({ name, after: before, lines: some, isLast });
      const headers = { 'content-type': 'application/json' };
      const response = await ask(target, path, { method: 'POST', headers, body });
      if (!response.ok)
        throw new Error(`${path} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
      before += some.length;
      const { rows } = Stored.parse(await response.json());
      if (rows < before) throw new Error(`The archive ${name} has ${rows} lines in place of ${before}: import again.`);
    }
    this.#archived.set(name, before);
  }
}

const Stored = z.object({ rows: z.int() });

const OUTCOMES = { 201: 'created', 200: 'stored', 304: 'unchanged' } as const;

function* chunksOf(lines: readonly string[]): Generator<string[]> {
  let chunk: string[] = [];
  let characters = 0;
  for (const line of lines) {
    if (chunk.length > 0 && (characters + line.length > LINES_CHARACTERS || chunk.length === MAX_LINES)) {
      yield chunk;
      chunk = [];
      characters = 0;
    }
    chunk.push(line);
    characters += line.length;
  }
  if (chunk.length > 0) yield chunk;
}
