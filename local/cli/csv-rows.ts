import { pipeline } from 'node:stream';
import { type Info, parse } from 'csv-parse';
import type { Values } from '../../lib/base/values.ts';
import { isEmptyCell, parseCell } from '../../lib/define/declaration/csv-value.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { maxRowBytes } from './max-row-bytes.ts';
import { readUtf8 } from './read-utf8.ts';

export const NOT_JSON =
  'The file is a JSON array or object, which is not accepted. Write one JSON object on each line, in a file whose name ends with .ndjson, or CSV.';

export interface ImportRow {
  /** The line in the file; the header is line 1. */
  readonly line: number;
  readonly values: Values;
  /** Tells the row from equal ones before it, if the row does not say its whole key. */
  readonly copy?: string;
}

export interface ImportEvents {
  /** Reports the columns of a CSV file. */
  onHeader?(columns: readonly string[]): void;
  onRow(): void;
  /** Reports a row that cannot be parsed. */
  onBad(line: number, reason: string): void;
}

interface Parsed {
  readonly raw: string;
  readonly record: Readonly<Record<string, string>>;
  readonly info: Info;
}

/**
 * Reads the rows of a CSV stream as values of an entity. An empty cell has no value. Throws if the header has an unknown or duplicate
 * column, if the bytes are not UTF-8, and for a row that is too large: it may end anywhere, if a quotation mark is missing.
 */
export async function* readCsv(
  entity: Entity,
  input: AsyncIterable<Uint8Array>,
  { onHeader, onRow, onBad }: ImportEvents,
): AsyncGenerator<ImportRow> {
  const maxBytes = maxRowBytes(entity);
  const parser = parse({
    info: true,
    raw: true,
    // Otherwise the parser takes the lines after a misplaced quotation mark for a part of its row. `isCsv` rejects that row alone.
    relax_quotes: true,
    max_record_size: maxBytes,
    skip_empty_lines: true,
    skip_records_with_error: true,
    columns: (header: string[]) => {
      if (/^\s*[[{]/.test(header[0] ?? '')) throw new Error(NOT_JSON);
      const unknown = header.filter((column) => !(column in entity.columns));
      if (unknown.length > 0)
        throw new Error(`The header has columns that are not fields of ${entity.name}: ${unknown.join(', ')}.`);
      const twice = new Set(header.filter((column, index) => header.indexOf(column) !== index));
      if (twice.size > 0) throw new Error(`The header has duplicate columns: ${[...twice].join(', ')}.`);
      onHeader?.(header);
      return header;
    },
    on_skip: (error) => {
      if (error?.code === 'CSV_MAX_RECORD_SIZE')
        throw new Error(
          `Line ${error.lines}: the row has more than ${maxBytes} bytes. A quotation mark may be missing before this line.`,
        );
      onBad(Number(error?.lines ?? 0), 'the row is not CSV with the columns of the header');
      return undefined;
    },
  });
  for await (const { raw, record, info } of pipeline(
    readUtf8(input),
    parser,
    () => undefined,
  ) as AsyncIterable<Parsed>) {
    if (!isCsv(raw)) {
      onBad(info.lines, 'a quotation mark is not at the beginning and the end of its value');
      continue;
    }
    onRow();
    yield { line: info.lines, values: toValues(entity, record) };
  }
}

/** True if a quotation mark is only around a value, or doubled in such a value (RFC 4180). */
function isCsv(row: string): boolean {
  // The parser adds parts of the line ends and empty lines around the row.
  const text = row.replace(/^[\r\n]+|[\r\n]+$/g, '');
  const value = /(?:"[^"]*(?:""[^"]*)*"|[^",]*)(,|$)/y;
  for (;;) {
    const match = value.exec(text);
    if (!match) return false;
    if (match[1] === '') return true;
  }
}

function toValues({ columns }: Entity, record: Readonly<Record<string, string>>): Values {
  const typed = Object.entries(record).flatMap(([field, text]) => {
    const type = columns[field] ?? 'String';
    return isEmptyCell(type, text) ? [] : [[field, parseCell(type, text)] as const];
  });
  return Object.fromEntries(typed);
}
