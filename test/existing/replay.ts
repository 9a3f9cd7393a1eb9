import { createHash } from 'node:crypto';
import { parseExact } from './tables.ts';

/** What the program in dotnet/ prints and logs. */

type Row = Readonly<Record<string, unknown>>;
interface Change {
  readonly op: 'insert' | 'replace' | 'merge' | 'delete';
  readonly status: unknown;
  readonly row: Row;
}

/** The hash that `read-back` prints of rows in the order of their keys. */
export function hashOfRows(rows: readonly string[]): string {
  return createHash('sha256')
    .update(rows.map((row) => `${row}\n`).join(''))
    .digest('hex');
}

/**
 * The rows after the changes that `write-beside` has logged, by their keys, each with its properties in the order of names. Throws if the
 * outcome of a change is unknown.
 */
export function rowsAfter(rows: readonly string[], log: readonly string[]): ReadonlyMap<string, string> {
  const after = new Map(rows.map((json) => byKey(parseExact(json) as Row)));
  for (const line of log) {
    const { op, status, row } = parseExact(line) as Change;
    const code = Number(JSON.stringify(status));
    if (code === 0 || code >= 500) throw new Error(`The outcome is unknown: ${line}`);
    if (code >= 400) continue;
    const [key] = byKey(row);
    if (op === 'delete') after.delete(key);
    else after.set(key, op === 'merge' ? { ...after.get(key), ...row } : row);
  }
  return new Map([...after].map(([key, row]) => [key, inOrder(row)]));
}

const byKey = (row: Row) => [`${row.PartitionKey}/${row.RowKey}`, row] as const;
const inOrder = (row: Row) =>
  JSON.stringify(Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))));
