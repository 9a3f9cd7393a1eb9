import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { dumpOf, EXISTING_TABLES, type ExistingTable, existingRows, loadRows, openTable, readRows } from './tables.ts';

/**
 * `node test/existing/data.ts load CONNECTION_STRING` creates the tables in an account, as the program in dotnet/ does; with `dump`, it writes
 * data/ from the tables of an account.
 */

const [mode, connectionString = ''] = process.argv.slice(2);
for (const table of Object.keys(EXISTING_TABLES) as ExistingTable[]) {
  const client = openTable(connectionString, table);
  if (mode === 'load') await loadRows(client, existingRows(table));
  const rows = await readRows(client);
  if (mode === 'dump') writeFileSync(dumpOf(table), gzipSync(`${rows.join('\n')}\n`, { level: 9 }));
  console.log(`${table}: ${rows.length} rows`);
}
