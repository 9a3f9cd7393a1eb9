import { hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type Command, Option } from 'commander';
import pMap from 'p-map';
import { RowkeyError } from '../../lib/base/errors.ts';
import { omit } from '../../lib/base/values.ts';
import { checkFields } from '../../lib/define/codec/validation.ts';
import { type Entity, isOneRow } from '../../lib/define/declaration/entity.ts';
import type { Model } from '../../lib/define/define-model.ts';
import type { Engine } from '../../lib/engine/engine.ts';
import { type Problem, toProblem } from '../../lib/http/problem.ts';
import { pathTo } from '../../lib/http/route.ts';
import { bulkLoad } from '../../lib/operations/bulk-load.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { type ImportRow, readCsv } from './csv-rows.ts';
import { importAll } from './everything/import-all.ts';
import { type FiledRow, groupIntoBatches, sendBatch } from './import-batches.ts';
import { readNdjson } from './ndjson-rows.ts';
import { MAX_KEYS, onePerKey, readKeyField } from './one-per-key.ts';
import { findAccounts } from './open-accounts.ts';
import { openEngine } from './open-copy.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import { openFiles, putFile } from './row-files.ts';
import { findModel, toStoredEntity } from './stored-entity.ts';
import { createTargetCommand, resolveTarget, type Target, type TargetOptions } from './target.ts';

const BATCHES_CONCURRENCY = 4;
/** The most files of a batch that are sent at a time. */
const FILES_CONCURRENCY = 4;
const OUTCOMES: Readonly<Record<number, 'created' | 'stored' | 'unchanged'>> = {
  201: 'created',
  /** Replaced, or put without a read, which does not tell whether the entity existed. */
  200: 'stored',
  304: 'unchanged',
};

interface ImportOptions extends TargetOptions {
  readonly files?: string;
  readonly all?: string;
  readonly compare?: true;
  readonly bulk?: true;
}

/** Opens the engine of an app. Tests have their own. */
type OpenEngine = (model: Model, folder: string) => Promise<Engine>;

const openOwnEngine: OpenEngine = async (model, folder) => openEngine(await findAccounts(folder), model, folder);

/** Creates the command for the entities of `own`, or of the app in the current folder. */
export function createImportCommand(own?: LocalApp, open: OpenEngine = openOwnEngine): Command {
  return createTargetCommand(
    'Imports a CSV or NDJSON file (also .gz) whose columns are named like the fields, or with --all the file of an export of everything. A second run changes nothing; if the file lacks fields of the key that are generated, for a day.',
  )
    .argument('[entity]', 'the name of the entity')
    .argument('[file]', 'the file to read, in UTF-8; a CSV file needs a header row; a row replaces the whole entity')
    .option('--files <folder>', 'the folder of the files that the columns of attachments name')
    .option('--all <file>', 'import this file of export --all instead, into an empty instance, and compare')
    .option('--compare', 'with --all: only compare what is stored with the file')
    .addOption(
      new Option(
        '--bulk',
        'load an entity that has no rows straight into the storage accounts, which is faster; no client may use the app meanwhile',
      ).conflicts(['all', 'files', 'url', 'token']),
    )
    .action(async (name: string | undefined, file: string | undefined, { all, compare, ...options }: ImportOptions) => {
      const model = await findModel(options, own);
      if (all !== undefined && name === undefined)
        return importAll(model, await resolveTarget(options), all, { isComparison: compare === true });
      if (all !== undefined || name === undefined || file === undefined)
        throw new Error('Name an entity and a file, or --all and a file.');
      await importFile(toStoredEntity(model, name), file, { ...options, open: () => open(model, options.data) });
    });
}

async function importFile(
  entity: Entity,
  file: string,
  { files: folder, bulk, open, ...options }: ImportOptions & { readonly open: () => Promise<Engine> },
): Promise<void> {
  const started = performance.now();
  const { size } = await stat(file).catch(() => {
    throw new Error(`File ${file} not found.`);
  });
  if (folder !== undefined && !(await stat(folder).catch(() => undefined))?.isDirectory())
    throw new Error(`Folder ${folder} not found.`);
  const write = bulk ? loadInto(await open()) : sendTo(await resolveTarget(options));
  const source = hash('sha256', basename(file));
  const counts = { read: 0, created: 0, stored: 0, unchanged: 0, rejected: 0 };
  const files = { uploaded: 0, unchanged: 0 };
  const generated = new Set<string>();
  const content = createReadStream(file);
  const countDone = () => counts.created + counts.stored + counts.unchanged + counts.rejected;
  const progress = startProgress({
    rows: countDone,
    ...(folder === undefined ? {} : { describe: () => `${files.uploaded + files.unchanged} files` }),
    // Bytes of the file before decompression, like its size; some rows that are read wait for others.
    part: () => (counts.read === 0 ? 0 : (content.bytesRead / size) * (countDone() / counts.read)),
  });
  const reject = ({ line }: { line: number }, reason: string | Problem) => {
    counts.rejected += 1;
    progress.say(`Line ${line}: ${typeof reason === 'string' ? reason : reasonOf(reason)}`);
  };

  let absent: readonly string[] = [];
  const onBad = (line: number, reason: string) => reject({ line }, reason);
  const readRows = /\.ndjson(\.gz)?$/.test(file) ? readNdjson : readCsv;
  const rows = readRows(entity, readContent(content, file), {
    onHeader: (columns) => {
      absent = Object.keys(omit(entity.columns, [...entity.decidedFields, ...columns]));
    },
    onRow: () => {
      counts.read += 1;
    },
    onBad: (line, reason) => {
      counts.read += 1;
      onBad(line, reason);
    },
  });
  const formatCounts = () => {
    const { read, created, stored, unchanged, rejected } = counts;
    const outcomes = `${created} created, ${stored} stored, ${unchanged} unchanged, ${rejected} rejected`;
    const unsent = read - countDone();
    const took = ((performance.now() - started) / 1000).toFixed(1);
    return `${read} read: ${outcomes}, ${unsent > 0 ? `${unsent} not sent, ` : ''}in ${took} s.`;
  };
  try {
    const filed = withFiles(entity, onePerKey(entity, rows, onBad), { folder, reject });
    await write(filed, { entity, source, counts, files, generated, reject, signal: progress.signal });
  } catch (error) {
    progress.stop();
    if (error !== progress.signal.reason && countDone() > 0) console.log(`Failed. ${formatCounts()}`);
    if (error !== progress.signal.reason) throw error;
  }
  progress.stop();
  if (progress.signal.aborted) {
    console.log(`Interrupted. ${formatCounts()} Import the file again: rows that are stored already do not change.`);
    if (generated.size > 0) console.log(sayGenerated(generated));
    process.exitCode = INTERRUPTED_EXIT_CODE;
    return;
  }
  const { read, created, stored, unchanged, rejected } = counts;
  if (read === 0) console.log(`The file ${file} has no rows.`);
  else if (created + stored + rejected + files.uploaded === 0)
    console.log(
      `Nothing to do: all ${unchanged} rows${files.unchanged > 0 ? ` and ${files.unchanged} files` : ''} are already stored.`,
    );
  else console.log(formatCounts());
  if (stored > 0 && absent.length > 0)
    console.log(
      isOneRow(entity)
        ? `The file has no column for ${absent.join(', ')}. The API does not tell whether a row existed: those that did lost their values of these fields.`
        : `The file has no column for ${absent.join(', ')}: the rows that it replaced lost their values of these fields.`,
    );
  if (generated.size > 0) console.log(sayGenerated(generated));
  if (read > MAX_KEYS) console.log(`Equal keys were found only within ${MAX_KEYS} rows.`);
  if (files.uploaded > 0) console.log(`Files: ${files.uploaded} uploaded, ${files.unchanged} unchanged.`);
  if (rejected > 0) process.exitCode = 1;
}

interface Importing {
  readonly entity: Entity;
  readonly source: string;
  readonly counts: Record<'created' | 'stored' | 'unchanged', number>;
  readonly files: Record<'uploaded' | 'unchanged', number>;
  /** The fields of keys that the API has generated. */
  readonly generated: Set<string>;
  readonly reject: (row: { line: number }, reason: string | Problem) => void;
  readonly signal: AbortSignal;
}

type Write = (rows: AsyncIterable<FiledRow>, importing: Importing) => Promise<void>;

/** Sends the rows to the API, and their files. */
const sendTo =
  (target: Target): Write =>
  async (rows, { entity, source, counts, files, generated, reject, signal }) => {
    await pMap(
      untilAborted(groupIntoBatches(entity, rows), signal),
      async (batch) => {
        const results = await sendBatch({ ...target, entity, source }, batch);
        const put = async (row: FiledRow, index: number) => {
          const { status = 0, problem } = results[index] ?? {};
          const outcome = OUTCOMES[status];
          if (!outcome) return reject(row, problem ?? 'the API returned no result for this row');
          for (const field of generatedFields(entity, row)) generated.add(field);
          const key = entity.keyFields.map((field) => readKeyField(entity, field, row.values));
          const path = pathTo(target.root, entity.name, ...key);
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
  };

/** Loads the rows into an entity that has none. Throws `wrong-operation` for another one. */
const loadInto =
  (engine: Engine): Write =>
  async (rows, { entity, counts, reject, signal }) => {
    const lines: number[] = [];
    async function* valuesOf() {
      for await (const row of rows) {
        const isGenerated = (field: string) => entity.schema.shape[field]?.safeParse(undefined).success;
        const generated = generatedFields(entity, row).find(isGenerated);
        // A load that is repeated would not know the entity of such a row.
        if (generated !== undefined) reject(row, `the row has no "${generated}", which --bulk needs`);
        else if (row.files.length > 0) reject(row, 'the row has files, which --bulk does not load');
        else {
          lines.push(row.line);
          yield row.values;
        }
      }
    }
    const onProgress = ({ created, existing }: { readonly created: number; readonly existing: number }) => {
      counts.created = created;
      counts.unchanged = existing;
    };
    const loaded = await bulkLoad(engine, entity, valuesOf(), {
      signal,
      onProgress,
      onRejected: ({ position, error }) => reject({ line: lines[position] ?? 0 }, toProblem(error)),
    });
    onProgress(loaded);
  };

/** The fields of the key that the row lacks and that do not follow from its other fields. The API remembers for a day which values it gave them. */
function generatedFields(entity: Entity, { values }: ImportRow): string[] {
  return entity.keyFields.filter((field) => readKeyField(entity, field, values) === undefined);
}

function sayGenerated(fields: ReadonlySet<string>): string {
  return `The API generated ${[...fields].join(', ')} of rows without a value. It knows these rows for a day, in a file of this name: importing them again changes nothing until then, and later creates their entities a second time.`;
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

/** Ends when the signal is aborted, without the rest of the batches. */
async function* untilAborted<One>(batches: AsyncIterable<One>, signal: AbortSignal): AsyncGenerator<One> {
  for await (const batch of batches) {
    if (signal.aborted) return;
    yield batch;
  }
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
      checkFields(row.values);
      const files = await openFiles(entity, row, folder);
      const [unknown] = files.length > 0 ? generatedFields(entity, row) : [];
      if (unknown !== undefined)
        throw new RowkeyError('invalid-input', `the row has files and no "${unknown}", which their path needs`);
      yield { ...row, files };
    } catch (error) {
      if (!(error instanceof RowkeyError)) throw error;
      reject(row, error.message);
    }
  }
}
