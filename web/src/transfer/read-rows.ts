import Papa from 'papaparse';
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

const CHUNK_BYTES = 256 * 1_024;

/** Reads a CSV or NDJSON file piece by piece. Throws for a header with unknown columns. */
export function readRows(entity: Entity, file: File): AsyncGenerator<RowChunk> {
  return /\.(ndjson|jsonl)$/i.test(file.name) ? readNdjson(file) : readCsv(entity, file);
}

async function* readCsv(entity: Entity, file: File): AsyncGenerator<RowChunk> {
  // The parser calls back; each piece waits until the one before is taken.
  const pieces: (RowChunk | Error | undefined)[] = [];
  let arrived = () => {};
  let resume = () => {};
  let line = 1;
  const add = (piece: RowChunk | Error | undefined) => {
    pieces.push(piece);
    arrived();
  };
  Papa.parse<Record<string, string>>(file, {
    header: true,
    skipEmptyLines: true,
    chunkSize: CHUNK_BYTES,
    chunk({ data, errors, meta }, parser) {
      const headerError = line === 1 ? checkHeader(entity, meta.fields ?? []) : undefined;
      if (headerError) {
        // The abort calls `complete` before it returns.
        add(headerError);
        return parser.abort();
      }
      const rows = data.map((cells, index): FileRow => {
        line += 1;
        const error = errors.find(({ row }) => row === index);
        return error ? { line, reason: error.message } : { line, values: toTypedRow(entity, cells) };
      });
      parser.pause();
      resume = () => parser.resume();
      add({ rows, share: file.size === 0 ? 1 : Math.min(1, meta.cursor / file.size) });
    },
    complete: () => add(undefined),
    error: (error) => add(error),
  });
  for (;;) {
    const [piece] = pieces.length > 0 ? pieces.splice(0, 1) : [null];
    if (piece === null) {
      await new Promise<void>((resolve) => {
        arrived = resolve;
      });
      continue;
    }
    if (piece === undefined) return;
    if (piece instanceof Error) throw piece;
    yield piece;
    resume();
  }
}

function checkHeader({ name, fields }: Entity, header: readonly string[]): Error | undefined {
  const unknown = header.filter((column) => !Object.hasOwn(fields, column));
  return unknown.length > 0
    ? new Error(`The header has columns that are not fields of ${name}: ${unknown.join(', ')}.`)
    : undefined;
}

async function* readNdjson(file: File): AsyncGenerator<RowChunk> {
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
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
    const parsed: unknown = JSON.parse(text);
    const isRow = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    if (isRow) return { values: { ...parsed } };
  } catch {
    // Below.
  }
  return { reason: 'The line is not a JSON object.' };
}
