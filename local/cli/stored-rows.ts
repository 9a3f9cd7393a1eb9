import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { typesToRead } from '../../lib/define/codec/further-rows.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { periodOfTable } from '../../lib/define/keys/calendar.ts';
import { isCopy } from '../../lib/define/places/index-entries.ts';
import { hasKeyOf } from '../../lib/engine/read/entity-rows.ts';
import { listTables } from '../../lib/storage/provision.ts';
import { timeOf } from '../../lib/storage/row-journal.ts';
import { type Properties, type Row, scanTable } from '../../lib/storage/rows.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import { readLines } from './ndjson-rows.ts';

/** The rows of an entity as storage has them, in forms that other tools read. */

const PAGE = 1_000;

/** Reads the rows of an entity, and its further rows, with the names and types of their stored properties. */
export async function* readStoredRows(
  { shapes, ...storage }: Storage,
  entity: Entity,
  signal: AbortSignal,
): AsyncGenerator<readonly Row[]> {
  const shape = shapes?.get(entity.table);
  const types: readonly unknown[] = typesToRead(entity, Object.keys(entity.columns));
  const { filter, isOfType } = shape?.toFilter({ type: entity.name }) ?? {
    // What clients have written may have any type.
    filter: entity.isWrittenByClients ? {} : { type: typesToRead(entity, Object.keys(entity.columns)) },
    isOfType: ({ EntityType }: Properties) => types.includes(EntityType),
  };
  const isKept = (row: Row) => {
    if (shape) return isOfType(shape.toProperties(row));
    if (entity.isWrittenByClients && hasKeyOf(entity, row)) return true;
    return isOfType(row.properties) && !isCopy(row);
  };
  for (const table of await tablesOf(storage, entity)) {
    let at: Pick<Parameters<typeof scanTable>[1], 'after' | 'resume'> | undefined = {};
    while (at) {
      signal.throwIfAborted();
      const page = await scanTable(storage, { table, ...filter, limit: PAGE, isTyped: true, mayPause: true, ...at });
      yield page.rows.filter(isKept);
      const last = page.rows.at(-1);
      at = page.more && last ? { after: last } : undefined;
      if (page.resume !== undefined) at = { resume: page.resume };
    }
  }
}

async function tablesOf(storage: Storage, { table, period }: Entity): Promise<readonly string[]> {
  if (!period) return [table];
  const names = await listTables(storage, table);
  return names.filter((name) => periodOfTable(period.per, table, name) !== undefined).toSorted();
}

/** What is written of a row. */
type Line = readonly [
  partition: string,
  row: string,
  timestamp: string,
  properties: readonly (readonly [name: string, type: string, value: unknown])[],
];

function toLine({ partition, row, etag, properties }: Row): Line {
  const typed = Object.entries(properties).flatMap(([name, value]) => {
    if (value === null || value === undefined) return [];
    if (typeof value === 'string') return [[name, 'String', value] as const];
    if (typeof value === 'boolean') return [[name, 'Boolean', value] as const];
    const { type = 'Int32', value: given = value } = Object(value);
    return [[name, String(type), given] as const];
  });
  return [partition, row, timeOf(etag) ?? '', typed];
}

/**
 * The CSV of Azure Storage Explorer, with a column `Name@type` after each column `Name`. Only the last row tells which columns there are, so `file` has
 * the rows meanwhile.
 */
export async function* toTypedCsv(rows: AsyncIterable<Row>, file: string): AsyncGenerator<string> {
  const columns = new Set<string>();
  async function* lines() {
    for await (const row of rows) {
      const line = toLine(row);
      for (const [name] of line[3]) columns.add(name);
      yield `${JSON.stringify(line)}\n`;
    }
  }
  try {
    await pipeline(Readable.from(lines()), createWriteStream(file));
    const names = [...columns].sort();
    yield toRecord(['PartitionKey', 'RowKey', 'Timestamp', ...names.flatMap((name) => [name, `${name}@type`])]);
    for await (const { bytes } of readLines(createReadStream(file), Number.POSITIVE_INFINITY)) {
      if (!bytes?.length) continue;
      const [partition, row, timestamp, properties]: Line = JSON.parse(Buffer.from(bytes).toString());
      const byName = new Map(properties.map(([name, type, value]) => [name, [String(value), `Edm.${type}`]]));
      yield toRecord([partition, row, timestamp, ...names.flatMap((name) => byName.get(name) ?? ['', ''])]);
    }
  } finally {
    await rm(file, { force: true });
  }
}

const toRecord = (cells: readonly string[]) => `${cells.map(toCell).join(',')}\r\n`;

/** A text is quoted if a reader could take a part of it for the end of its cell, or leave out a space. */
function toCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The JSON in which the Table service returns entities, with the type of each property that JSON does not tell. */
export async function* toODataJson(rows: AsyncIterable<Row>): AsyncGenerator<string> {
  let before = '{"value":[\n';
  for await (const row of rows) {
    const [PartitionKey, RowKey, Timestamp, properties] = toLine(row);
    const typed = properties.flatMap(([name, type, value]) => {
      // 5.0 is a Double, and 5 an Int32.
      if (type === 'Double' && Number.isFinite(Number(value))) return [[name, rawJSON(String(value))]];
      const isPlain = type === 'String' || type === 'Boolean' || type === 'Int32';
      return [...(isPlain ? [] : [[`${name}@odata.type`, `Edm.${type}`]]), [name, value]];
    });
    const own = { PartitionKey, RowKey, 'Timestamp@odata.type': 'Edm.DateTime', Timestamp };
    yield `${before}${JSON.stringify({ ...own, ...Object.fromEntries(typed) })}`;
    before = ',\n';
  }
  yield before.startsWith('{') ? `${before}]}\n` : '\n]}\n';
}

/** The types of TypeScript do not have it yet. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };
