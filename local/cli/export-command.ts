import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Command, Option } from 'commander';
import pMap from 'p-map';
import { z } from 'zod';
import type { Values } from '../../lib/base/values.ts';
import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { Model } from '../../lib/define/define-model.ts';
import { pathTo } from '../../lib/http/route.ts';
import { openStorage, type Storage } from '../../lib/storage/storage.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { exportAll } from './everything/export-all.ts';
import { listLost } from './lost-fields.ts';
import { findAccounts } from './open-accounts.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import { findModel, toStoredEntity } from './stored-entity.ts';
import { readStoredRows, toODataJson, toTypedCsv } from './stored-rows.ts';
import {
  ask,
  createTargetCommand,
  formatProblem,
  readNextPage,
  readProblem,
  resolveTarget,
  type Target,
  type TargetOptions,
} from './target.ts';

const PAGE = 200;
const FILES_CONCURRENCY = 8;

/** Opens the storage accounts of an app. Tests have their own. */
type OpenStorage = (model: Model, folder: string) => Promise<Storage>;

const openOwnStorage: OpenStorage = async ({ list, prefix }, folder) =>
  withShapes(openStorage((await findAccounts(folder)).options, prefix), list);

/** Creates the command for the entities of `own`, or of the app in the current folder. */
export function createExportCommand(own?: LocalApp, open: OpenStorage = openOwnStorage): Command {
  return createTargetCommand(
    'Exports all entities of a kind to an NDJSON file (also .gz) in key order, or with --all everything to a tar file. The command import reads both.',
  )
    .argument('[entity]', 'the name of the entity')
    .argument('[file]', 'the file to write; an existing file is replaced')
    .option('--all <file>', 'export everything to this file instead: .tar, or .tar.gz')
    .addOption(
      new Option(
        '--stored',
        'export the stored rows with their types instead, read from the storage accounts: to .csv, which Azure Storage Explorer imports, or to .json (also .gz)',
      ).conflicts(['all', 'url', 'token']),
    )
    .action(async (name: string | undefined, file: string | undefined, { all, stored, ...options }: ExportOptions) => {
      const model = await findModel(options, own);
      if (all !== undefined && name === undefined) return exportAll(model, await resolveTarget(options), all);
      if (all !== undefined || name === undefined || file === undefined)
        throw new Error('Name an entity and a file, or --all and a file.');
      const entity = toStoredEntity(model, name);
      await (stored ? exportStored(entity, file, () => open(model, options.data)) : exportFile(entity, file, options));
    });
}

interface ExportOptions extends TargetOptions {
  readonly all?: string;
  readonly stored?: true;
}

async function exportStored(entity: Entity, file: string, open: () => Promise<Storage>): Promise<void> {
  const [, form] = /\.(csv|json)(\.gz)?$/.exec(file) ?? [];
  if (form === undefined)
    throw new Error(`The name of the file ${file} must end with .csv, .json, .csv.gz or .json.gz.`);
  const storage = await open();
  let count = 0;
  const progress = startProgress({ rows: () => count });
  async function* readRows() {
    for await (const rows of readStoredRows(storage, entity, progress.signal)) {
      yield* rows;
      count += rows.length;
    }
  }
  const lines = form === 'csv' ? toTypedCsv(readRows(), `${file}.rows`) : toODataJson(readRows());
  if (!(await writeFile(file, lines, progress)))
    return console.log(`Interrupted after ${count} rows: the file ${file} is not written.`);
  console.log(`Exported ${count} rows of ${entity.name} to ${file}.`);
}

async function exportFile(entity: Entity, file: string, options: TargetOptions): Promise<void> {
  const target = await resolveTarget(options);
  let count = 0;
  let unreadable = 0;
  const progress = startProgress({ rows: () => count });
  async function* readLines() {
    for await (const page of readPages(target, entity)) {
      const rows = await pMap(page, (values) => readImportableRow(target, entity, values), {
        concurrency: FILES_CONCURRENCY,
      });
      const there = rows.filter((row) => row !== undefined);
      for (const row of there) {
        for (const field of listUnreadable(row)) {
          unreadable += 1;
          progress.say(`${formatKey(entity, row)}: "${field}" cannot be read.`);
        }
        yield `${JSON.stringify(row)}\n`;
      }
      count += there.length;
    }
  }
  if (!(await writeFile(file, readLines(), progress)))
    return console.log(`Interrupted after ${count} rows: the file ${file} is not written.`);
  console.log(`Exported ${count} ${entity.name} to ${file}.`);
  if (unreadable === 0) return;
  console.error(`The file is not complete. Values that cannot be read, and are null in the file: ${unreadable}.`);
  process.exitCode = 1;
}

/** False if it was interrupted. */
async function writeFile(
  file: string,
  lines: AsyncIterable<string>,
  { signal, stop }: ReturnType<typeof startProgress>,
): Promise<boolean> {
  const beside = `${file}.new`;
  const output = createWriteStream(beside);
  try {
    const source = Readable.from(lines);
    await (file.endsWith('.gz')
      ? pipeline(source, createGzip(), output, { signal })
      : pipeline(source, output, { signal }));
    // Renamed last, so that the file is never incomplete.
    await rename(beside, file);
    return true;
  } catch (error) {
    await rm(beside, { force: true });
    if (!signal.aborted) throw error;
    process.exitCode = INTERRUPTED_EXIT_CODE;
    return false;
  } finally {
    stop();
  }
}

/** The API returns null for a value that it cannot read, and only for such a value. An import rejects a row with null. */
function listUnreadable(row: Values): string[] {
  return Object.keys(row).filter((field) => row[field] === null);
}

function formatKey({ name, keyFields }: Entity, row: Values): string {
  return `${name} "${keyFields.map((field) => row[field]).join('/')}"`;
}

/** Returns the fields that an import may write, and files with their bytes. Undefined if the entity was deleted meanwhile. */
async function readImportableRow(target: Target, entity: Entity, values: Values): Promise<Values | undefined> {
  const decided = entity.decidedFields;
  const path = pathTo(target.root, entity.name, ...entity.keyFields.map((key) => values[key]));
  const row: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(values)) {
    if (field in entity.attachments && value !== null) {
      const file = await findFile(target, `${path}/${field}`);
      if (file === 'lost') {
        row[field] = null;
        continue;
      }
      if (!file) {
        // The file or the entity was deleted meanwhile.
        const there = await find(target, path);
        return there && readImportableRow(target, entity, Row.parse(await there.json()));
      }
      row[field] = { base64: Buffer.from(await file.arrayBuffer()).toString('base64') };
    } else if (!decided.includes(field)) row[field] = value;
  }
  for (const field of listLost(entity, values)) row[field] = null;
  return row;
}

const Row = z.record(z.string(), z.unknown());
const Page = z.object({ items: z.array(Row) });

async function* readPages(target: Target, { name }: Entity): AsyncGenerator<Values[]> {
  for (let next: string | undefined = `${target.root}/operations/scan/${name}?top=${PAGE}`; next; ) {
    const response = await get(target, next);
    yield Page.parse(await response.json()).items;
    next = readNextPage(response);
  }
}

async function get(target: Target, path: string): Promise<Response> {
  const response = await find(target, path);
  if (!response) throw new Error(`${path.split('?')[0]} returned 404: ${target.url} runs another model or release.`);
  return response;
}

/** Returns undefined for 404. */
async function findFile(target: Target, path: string): Promise<Response | 'lost' | undefined> {
  const response = await ask(target, path);
  // The file alone: the entity is exported without it.
  if (response.status === 503) return 'lost';
  return find(target, path, response);
}

/** Returns undefined for 404. */
async function find(target: Target, path: string, asked?: Response): Promise<Response | undefined> {
  const response = asked ?? (await ask(target, path));
  if (response.ok) return response;
  if (response.status === 404) return undefined;
  throw new Error(`${path.split('?')[0]} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
}
