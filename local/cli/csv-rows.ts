import { pipeline, type Readable } from 'node:stream';
import { type Info, parse } from 'csv-parse';
import type { Entity, Values } from '../../lib/define/entity.ts';

/** Number() would take hexadecimal, Infinity and spaces as well. */
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

export interface ImportRow {
  /** Of the file, the header being line 1. */
  readonly line: number;
  readonly values: Values;
}

export interface ImportEvents {
  onRow(): void;
  /** A row that is no row of this file. */
  onBad(line: number, reason: string): void;
}

interface Parsed {
  readonly record: Readonly<Record<string, string>>;
  readonly info: Info;
}

/** The rows of a CSV stream as values of an entity; an empty cell is no value. Throws when the header does not fit. */
export async function* readCsv(
  entity: Entity,
  input: Readable,
  { onRow, onBad }: ImportEvents,
): AsyncGenerator<ImportRow> {
  const parser = parse({
    bom: true,
    info: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    columns: (header: string[]) => {
      const unknown = header.filter((column) => !(column in entity.columns));
      if (unknown.length > 0)
        throw new Error(`${entity.name} has no field ${unknown.join(', ')}, which the header names.`);
      const twice = new Set(header.filter((column, index) => header.indexOf(column) !== index));
      if (twice.size > 0) throw new Error(`The header names ${[...twice].join(', ')} more than once.`);
      return header;
    },
    on_skip: (error) => {
      onBad(Number(error?.lines ?? 0), 'the row is not CSV like its header');
      return undefined;
    },
  });
  for await (const { record, info } of pipeline(input, parser, () => undefined) as AsyncIterable<Parsed>) {
    onRow();
    yield { line: info.lines, values: toValues(entity, record) };
  }
}

function toValues(entity: Entity, record: Readonly<Record<string, string>>): Values {
  const filled = Object.entries(record).filter(([field, text]) => !isEmpty(entity, field, text));
  return Object.fromEntries(filled.map(([field, text]) => [field, toValue(entity, field, text)]));
}

/** Spaces may be the value of a text, but are none of a number. */
function isEmpty(entity: Entity, field: string, text: string): boolean {
  const type = entity.columns[field];
  const isNumber = type === 'Int32' || type === 'Int64' || type === 'Double';
  return (isNumber ? text.trim() : text) === '';
}

/** Text that cannot be converted is sent unchanged: the API reports the error. */
function toValue(entity: Entity, field: string, text: string): unknown {
  const type = entity.columns[field];
  if (type === 'String') return text;
  if (type === 'Boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (type === 'Json') {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  const number = DECIMAL.test(text) ? Number(text) : Number.NaN;
  // One too large for a number would be null in JSON.
  return Number.isFinite(number) ? number : text;
}
