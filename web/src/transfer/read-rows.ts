import Papa from 'papaparse';
import { findNotJson, MAX_JSON_DEPTH, sayNotJson } from '../../../lib/base/json-value.ts';
import { parseJson } from '../../../lib/base/parse-json.ts';
import type { Entity, Values } from '../api/model.ts';
import { toTypedRow } from './typed-row.ts';

/** A row of a file; without values if it cannot be parsed. */
export interface FileRow {
  readonly line: number;
  readonly values?: Values;
  readonly reason?: string;
}

export interface RowChunk {
  readonly rows: readonly FileRow[];
  /** How much of the file is read, from 0 to 1. */
  readonly share: number;
}

const CHUNK_CHARACTERS = 256 * 1_024;

/** Reads a CSV or NDJSON file piece by piece. Throws for a header with unknown columns. */
export function readRows(entity: Entity, file: File): AsyncGenerator<RowChunk> {
  return /\.(ndjson|jsonl)$/i.test(file.name) ? readNdjson(file) : readCsv(entity, file);
}

/**
 * The parser gets text, because it would decode each slice of a file alone and break a character of several bytes between two. It
 * returns row by row, because it numbers some errors within a chunk and others within the file.
 */
async function* readCsv(entity: Entity, file: File): AsyncGenerator<RowChunk> {
  const reader = openText(file);
  let dialect: Pick<Papa.ParseMeta, 'delimiter' | 'linebreak'> | undefined;
  let rest = '';
  let line = 0;
  let length = 0;
  let header: readonly string[] | undefined;
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? '';
    length += value?.length ?? 0;
    if (!done && rest.length < CHUNK_CHARACTERS) continue;
    const parsed: Papa.ParseStepResult<string[]>[] = [];
    const known = dialect ? { delimiter: dialect.delimiter, newline: dialect.linebreak as '\n' } : {};
    Papa.parse<string[]>(rest, { ...known, step: (row) => parsed.push(row) });
    // The last row of a chunk may go on in the next one.
    if (!done) parsed.pop();
    dialect ??= parsed[0]?.meta;
    rest = rest.slice(parsed.at(-1)?.meta.cursor ?? 0);
    const rows: FileRow[] = [];
    for (const { data: cells, errors } of parsed) {
      line += 1;
      if (cells.length === 1 && cells[0] === '') continue;
      const reason = errors.find(({ type }) => type === 'Quotes')?.message;
      if (header) rows.push({ line, ...toFileRow(entity, header, cells, reason) });
      else header = checkHeader(entity, cells, reason);
    }
    yield { rows, share: done ? 1 : Math.min(1, length / file.size) };
    if (done) return;
  }
}

function toFileRow(
  entity: Entity,
  header: readonly string[],
  cells: readonly string[],
  reason: string | undefined,
): Omit<FileRow, 'line'> {
  if (reason !== undefined) return { reason };
  if (cells.length !== header.length)
    return { reason: `The row has ${cells.length} cells; the header has ${header.length}.` };
  return toChecked(toTypedRow(entity, Object.fromEntries(header.map((field, column) => [field, cells[column] ?? '']))));
}

/** The row, or why JSON cannot hold it. */
function toChecked(values: Values): Omit<FileRow, 'line'> {
  const found = findNotJson(values, MAX_JSON_DEPTH + 1);
  return found ? { reason: `"${found.path.join('.')}" ${sayNotJson(found)}.` } : { values };
}

/** Returns the header if each column is a field, once. */
function checkHeader({ name, fields }: Entity, header: readonly string[], reason: string | undefined) {
  if (reason !== undefined) throw new Error(`The header cannot be read: ${reason}.`);
  const unknown = header.filter((column) => !Object.hasOwn(fields, column));
  if (unknown.length > 0)
    throw new Error(`The header has columns that are not fields of ${name}: ${unknown.join(', ')}.`);
  const repeated = header.filter((column, index) => header.indexOf(column) !== index);
  if (repeated.length > 0) throw new Error(`The header repeats columns: ${repeated.join(', ')}.`);
  return header;
}

/** Without `fatal`, bytes of another encoding would be replaced and stored. */
function openText(file: File): Pick<ReadableStreamDefaultReader<string>, 'read'> {
  const reader = file
    .stream()
    .pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))
    .getReader();
  return {
    read: () =>
      reader.read().catch((error: unknown) => {
        if (!(error instanceof TypeError)) throw error;
        throw new Error('The file is not UTF-8: save it as UTF-8 and import it again.');
      }),
  };
}

async function* readNdjson(file: File): AsyncGenerator<RowChunk> {
  const reader = openText(file);
  let rest = '';
  let line = 0;
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    const lines = `${rest}${value ?? ''}`.split(/\r?\n/);
    rest = done ? '' : (lines.pop() ?? '');
    length += value?.length ?? 0;
    const rows = lines.flatMap((text): FileRow[] => {
      line += 1;
      return text.trim() === '' ? [] : [{ line, ...parseLine(text) }];
    });
    yield { rows, share: done ? 1 : Math.min(1, length / file.size) };
    if (done) return;
  }
}

function parseLine(text: string): Omit<FileRow, 'line'> {
  try {
    const parsed = parseJson(text);
    const isRow = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    if (isRow) return toChecked({ ...parsed });
  } catch {
    // Not JSON: rejected below, with a line that is another JSON value.
  }
  return { reason: 'The line is not a JSON object.' };
}
