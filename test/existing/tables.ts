import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { TableClient, type TransactionAction } from '@azure/data-tables';

/**
 * Tables that exist before Rowkey: dotnet/ has the program that wrote them, and data/ what it wrote, a row a line, in the JSON of the Table
 * service with full metadata. What differs from account to account is left out.
 */

/** The tables, each with the number of its rows. */
export const EXISTING_TABLES = {
  ShopData: 20_000,
  RequestLog: 3_000,
  Identity: 4_700,
  Employees: 300,
  EmployeeIndex: 50,
} as const;
export type ExistingTable = keyof typeof EXISTING_TABLES;

const MAX_TRANSACTION_ACTIONS = 100;
const FULL_METADATA = { accept: 'application/json;odata=fullmetadata' };
const OF_THE_ACCOUNT = /^(odata\.(etag|type|id|editLink)|Timestamp(@odata\.type)?)$/;

/** The file with the rows of a table. */
export function dumpOf(table: ExistingTable): URL {
  return new URL(`data/${table}.ndjson.gz`, import.meta.url);
}

/** The rows of a table as .NET wrote them, in the order of their keys. */
export function existingRows(table: ExistingTable): string[] {
  return gunzipSync(readFileSync(dumpOf(table)))
    .toString()
    .trimEnd()
    .split('\n');
}

/** Opens a table of an account. */
export function openTable(connectionString: string, table: string): TableClient {
  return TableClient.fromConnectionString(connectionString, table, { allowInsecureConnection: true });
}

/** Creates a table with these rows. The types of their properties are stored as the rows have them. */
export async function loadRows(client: TableClient, rows: readonly string[]): Promise<void> {
  await client.createTable();
  const partitions = Map.groupBy(rows.map(toEntity), ({ partitionKey }) => partitionKey);
  for (const entities of partitions.values())
    for (let from = 0; from < entities.length; from += MAX_TRANSACTION_ACTIONS) {
      const some = entities.slice(from, from + MAX_TRANSACTION_ACTIONS);
      await client.submitTransaction(some.map((entity): TransactionAction => ['create', entity]));
    }
}

/** Reads all rows of a table, in the form of `existingRows`. */
export async function readRows(client: TableClient): Promise<string[]> {
  const rows: string[] = [];
  const onResponse = ({ bodyAsText }: { readonly bodyAsText?: string | null }) => {
    const { value } = parseExact(bodyAsText ?? '') as { readonly value: readonly Record<string, unknown>[] };
    for (const row of value) {
      const kept = Object.entries(row).filter(([name]) => !OF_THE_ACCOUNT.test(name));
      rows.push(JSON.stringify(Object.fromEntries(kept)));
    }
  };
  const pages = client.listEntities({ requestOptions: { customHeaders: FULL_METADATA }, onResponse }).byPage();
  for await (const _ of pages);
  return rows;
}

/** The types of TypeScript do not have it yet. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/** Parses JSON so that `JSON.stringify` gives the same numbers. */
export function parseExact(json: string): unknown {
  return parse(json, rawJSON);
}

/** Parses JSON, with each number from its text: 3.0 is a Double, and 3 an Int32. */
function parse(json: string, toNumber: (text: string) => unknown): unknown {
  const reviver = (_: string, value: unknown, { source = '' }: { readonly source?: string }) =>
    typeof value === 'number' ? toNumber(source) : value;
  return JSON.parse(json, reviver as (key: string, value: unknown) => unknown);
}

const toTyped = (number: string) => ({ type: /[.e]/i.test(number) ? 'Double' : 'Int32', value: number });

function toEntity(row: string) {
  const { PartitionKey, RowKey, ...sent } = parse(row, toTyped) as Record<string, unknown>;
  const properties = Object.entries(sent)
    .filter(([name]) => !name.endsWith('@odata.type'))
    .map(([name, value]) => {
      const type = sent[`${name}@odata.type`];
      return [name, type === undefined ? value : { type: String(type).replace('Edm.', ''), value }] as const;
    });
  return { partitionKey: String(PartitionKey), rowKey: String(RowKey), ...Object.fromEntries(properties) };
}

/** A DateTime as the service returns it, and as Rowkey reads it: .NET writes seven digits of a second, and the emulator keeps them. */
export const asOfService = (instant: unknown): string =>
  String(instant)
    .replace(/(\.\d*?)0+Z$/, '$1Z')
    .replace('.Z', 'Z');
