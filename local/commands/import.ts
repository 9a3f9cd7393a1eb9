import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { Presets, SingleBar } from 'cli-progress';
import pMap from 'p-map';
import { z } from 'zod';
import { decidedFields } from '../../lib/define/codec/kept-fields.ts';
import type { Entity } from '../../lib/define/entity.ts';
import { omit, type Values } from '../../lib/define/values.ts';
import { RowkeyError } from '../../lib/errors.ts';
import { Problem } from '../../lib/http/problem.ts';
import { pathTo, rootOf } from '../../lib/http/route.ts';
import { run } from '../cli/command.ts';
import { type ImportRow, readCsv } from '../cli/csv-rows.ts';
import { createTargetCommand, resolveTarget } from '../cli/local-target.ts';
import { readNdjson } from '../cli/ndjson-rows.ts';
import { MAX_KEYS, onePerKey } from '../cli/one-per-key.ts';
import { openFiles, putFile, type RowFile } from '../cli/row-files.ts';
import { toStoredEntity } from '../cli/stored-entity.ts';
import { ask, formatProblem, readProblem, type Target, type TargetOptions } from '../cli/target.ts';

/** The most entities that the API accepts in a batch. */
const MAX_BATCH = 100;
/** The API accepts a body of 1 MiB, and a UTF-16 unit has up to three bytes in UTF-8. A longer row is sent alone. */
const MAX_BATCH_CHARACTERS = 250_000;
const BATCHES_CONCURRENCY = 4;
/** Of each batch. */
const FILES_CONCURRENCY = 4;
/** Limits the rows that wait for others of their partition. Above the limit, the oldest partition is sent. */
const MAX_WAITING = 5_000;
const MAX_ATTEMPTS = 6;
const LINES_EVERY_ROWS = 1_000;
const OUTCOMES: Readonly<Record<number, 'created' | 'stored' | 'unchanged'>> = {
  201: 'created',
  /** Replaced, or put without a read, which does not tell whether the entity existed. */
  200: 'stored',
  304: 'unchanged',
};

const program = createTargetCommand(
  'Imports a CSV or NDJSON file (also .gz) whose columns are named like the fields. A second run changes nothing.',
)
  .argument('<entity>', 'the name of the entity, such as employees in the example pack', toStoredEntity)
  .argument('<file>', 'the file to read, in UTF-8; a CSV file needs a header row; a row replaces the whole entity')
  .option('--files <folder>', 'the folder of the files that the columns of attachments name')
  .action(importFile);

/** A row with its files. */
interface FiledRow extends ImportRow {
  readonly files: readonly RowFile[];
}

async function importFile(
  entity: Entity,
  file: string,
  { files: folder, ...options }: TargetOptions & { readonly files?: string },
): Promise<void> {
  const started = performance.now();
  const { size } = await stat(file).catch(() => {
    throw new Error(`File ${file} not found.`);
  });
  if (folder !== undefined && !(await stat(folder).catch(() => undefined))?.isDirectory())
    throw new Error(`Folder ${folder} not found.`);
  const target = await resolveTarget(options);
  const counts = { read: 0, created: 0, stored: 0, unchanged: 0, rejected: 0 };
  const files = { uploaded: 0, unchanged: 0 };
  const progress = startProgress(size);
  const reject = ({ line }: { line: number }, reason: string) => {
    counts.rejected += 1;
    progress.say(`Line ${line}: ${reason}`);
  };

  let absent: readonly string[] = [];
  const onBad = (line: number, reason: string) => reject({ line }, reason);
  const source = createReadStream(file);
  const readRows = /\.ndjson(\.gz)?$/.test(file) ? readNdjson : readCsv;
  const rows = readRows(entity, readContent(source, file), {
    onHeader: (columns) => {
      absent = Object.keys(omit(entity.columns, [...decidedFields(entity), ...columns]));
    },
    // Bytes of the file before decompression, like its size.
    onRow: () => progress.update(source.bytesRead, ++counts.read, files.uploaded + files.unchanged),
    onBad: (line, reason) => {
      counts.read += 1;
      onBad(line, reason);
    },
  });
  try {
    await pMap(
      groupIntoBatches(entity, withFiles(entity, onePerKey(entity, rows, onBad), { folder, reject })),
      async (batch) => {
        const results = await send(target, entity, batch);
        const put = async (row: FiledRow, index: number) => {
          const { status = 0, problem } = results[index] ?? {};
          const outcome = OUTCOMES[status];
          if (!outcome) return reject(row, problem ? reasonOf(problem) : 'the API returned no result for this row');
          const path = pathTo(rootOf(''), entity.name, ...entity.keyFields.map((key) => row.values[key]));
          const reasons: string[] = [];
          for (const each of row.files) {
            const stored = await putFile(target, `${path}/${each.field}`, each, { isNew: outcome === 'created' });
            if (typeof stored === 'string') files[stored] += 1;
            else reasons.push(stored.reason);
          }
          if (reasons.length > 0) reject(row, reasons.join(' '));
          else counts[outcome] += 1;
        };
        await pMap(batch, put, { concurrency: FILES_CONCURRENCY });
      },
      { concurrency: BATCHES_CONCURRENCY },
    );
  } finally {
    progress.stop();
  }
  const { read, created, stored, unchanged, rejected } = counts;
  const took = ((performance.now() - started) / 1000).toFixed(1);
  if (read === 0) console.log(`The file ${file} has no rows.`);
  else if (created + stored + rejected + files.uploaded === 0)
    console.log(
      `Nothing to do: all ${unchanged} rows${files.unchanged > 0 ? ` and ${files.unchanged} files` : ''} are already stored.`,
    );
  else
    console.log(
      `${read} read: ${created} created, ${stored} stored, ${unchanged} unchanged, ${rejected} rejected, in ${took} s.`,
    );
  if (stored > 0 && absent.length > 0)
    console.log(
      `The file has no column for ${absent.join(', ')}: the rows that it replaced lost their values of these fields.`,
    );
  if (read > MAX_KEYS) console.log(`Equal keys were found only within ${MAX_KEYS} rows.`);
  if (files.uploaded > 0) console.log(`Files: ${files.uploaded} uploaded, ${files.unchanged} unchanged.`);
  if (rejected > 0) process.exitCode = 1;
}

function reasonOf({ detail, errors = [] }: Problem): string {
  return errors.length > 1 ? errors.map(({ field, message }) => `"${field}" ${message}`).join('; ') : detail;
}

/** A pipeline passes the error of any stream to its end; `pipe` does not. */
async function* readContent(source: Readable, file: string): AsyncGenerator<Buffer> {
  try {
    yield* file.endsWith('.gz') ? pipeline(source, createGunzip(), () => undefined) : source;
  } catch (error) {
    throw new Error(`The file ${file} cannot be read: ${error instanceof Error ? error.message : error}.`);
  }
}

/** Groups rows by partition, because a transaction is limited to one partition. */
async function* groupIntoBatches(entity: Entity, rows: AsyncIterable<FiledRow>): AsyncGenerator<FiledRow[]> {
  const waiting = new Map<string, FiledRow[]>();
  const sizes = new Map<string, number>();
  let count = 0;
  const take = (partition: string) => {
    const batch = waiting.get(partition) ?? [];
    waiting.delete(partition);
    sizes.delete(partition);
    count -= batch.length;
    return batch;
  };
  for await (const row of rows) {
    const partition = JSON.stringify(
      entity.partition.fields.map((field) => row.values[field] ?? deriveField(entity, field, row)),
    );
    const length = JSON.stringify(omitFiles(entity, row.values)).length;
    const before = sizes.get(partition) ?? 0;
    if (before > 0 && before + length > MAX_BATCH_CHARACTERS) yield take(partition);
    const batch = waiting.get(partition) ?? [];
    waiting.set(partition, batch);
    batch.push(row);
    count += 1;
    sizes.set(partition, (sizes.get(partition) ?? 0) + length);
    if (batch.length === MAX_BATCH) yield take(partition);
    const [oldest] = waiting.keys();
    if (count > MAX_WAITING && oldest !== undefined) yield take(oldest);
  }
  for (const partition of [...waiting.keys()]) yield take(partition);
}

/** A field of the partition key may be derived from the row. The API reports an invalid row. */
function deriveField(entity: Entity, field: string, { values }: ImportRow): unknown {
  return entity.derived[field]?.(values);
}

const RouteResult = z.object({ results: z.array(z.object({ status: z.number(), problem: Problem.optional() })) });
type Results = z.infer<typeof RouteResult>['results'];

/** Returns the result of each row, in order. Rows that other writers changed concurrently (503) are sent again. */
async function send(target: Target, entity: Entity, batch: readonly ImportRow[], attempt = 1): Promise<Results> {
  const results = await post(target, entity, batch);
  const busy = results.flatMap(({ status }, index) => (status === 503 ? [index] : []));
  if (busy.length === 0 || attempt === MAX_ATTEMPTS) return results;
  await sleep(1_000 * attempt);
  const rows = busy.flatMap((index) => batch[index] ?? []);
  const again = await send(target, entity, rows, attempt + 1);
  for (const [position, index] of busy.entries()) results[index] = again[position] ?? { status: 503 };
  return results;
}

function omitFiles({ attachments }: Entity, values: Values): Values {
  return omit(values, Object.keys(attachments));
}

/** Adds the files of each row. Rejects a row if any of its files is invalid, so that no row is imported without its files. */
async function* withFiles(
  entity: Entity,
  rows: AsyncIterable<ImportRow>,
  {
    folder,
    reject,
  }: { readonly folder: string | undefined; readonly reject: (row: ImportRow, reason: string) => void },
): AsyncGenerator<FiledRow> {
  for await (const row of rows) {
    try {
      yield { ...row, files: await openFiles(entity, row, folder) };
    } catch (error) {
      if (!(error instanceof RowkeyError)) throw error;
      reject(row, error.message);
    }
  }
}

async function post(target: Target, entity: Entity, batch: readonly ImportRow[]): Promise<Results> {
  const body = JSON.stringify({ actions: batch.map(({ values }) => ({ put: omitFiles(entity, values) })) });
  const headers = { 'content-type': 'application/json' };
  const response = await ask(target, pathTo(rootOf(''), entity.name, 'batch'), { method: 'POST', headers, body });
  if (response.ok) return RouteResult.parse(await response.json()).results;
  const problem = await readProblem(response);
  // The only row is too large, so the error of the request is the error of the row.
  if (problem && (response.status === 400 || response.status === 413) && batch.length === 1)
    return [{ status: response.status, problem }];
  throw new Error(
    `The API at ${target.url} rejected ${batch.length} rows with status ${response.status}: ${formatProblem(problem)}`,
  );
}

function startProgress(size: number) {
  if (!process.stdout.isTTY)
    return {
      update(_bytes: number, rows: number, _files: number) {
        if (rows % LINES_EVERY_ROWS === 0) console.log(`${rows} rows read`);
      },
      say: (text: string) => console.error(text),
      stop: () => undefined,
    };
  const bar = new SingleBar(
    { format: '{bar} {percentage}% {rows} rows, {files} files', clearOnComplete: true },
    Presets.shades_classic,
  );
  bar.start(size, 0, { rows: 0, files: 0 });
  return {
    update: (bytes: number, rows: number, files: number) => bar.update(bytes, { rows, files }),
    // Overwrites the bar, which is drawn again on the next line.
    say: (text: string) => process.stderr.write(`\r\u001b[K${text}\n`),
    stop: () => bar.stop(),
  };
}

await run(program);
