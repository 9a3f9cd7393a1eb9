import { expect, test } from 'vitest';
import { testStorage } from '../storage.ts';
import { EXISTING_TABLES, type ExistingTable, existingRows, loadRows, openTable, readRows } from './tables.ts';

/** What is loaded is stored as .NET stored it: all tests of existing tables depend on that. */

const connectionString = testStorage(import.meta.url);
const tables = Object.keys(EXISTING_TABLES) as ExistingTable[];

async function expectToReadBack(name: string, rows: readonly string[]): Promise<void> {
  const client = openTable(connectionString, name);
  await loadRows(client, rows);
  expect(await readRows(client)).toEqual(rows);
}

test.each(tables)('rows of each kind of %s read back byte for byte as .NET wrote them', async (table) => {
  const rows = existingRows(table);
  expect(rows).toHaveLength(EXISTING_TABLES[table]);
  // Neighbors in the order of keys are of different kinds in some partitions.
  await expectToReadBack(
    `some${table}`,
    rows.filter((row, index) => index < 150 || row.includes('"NaN"') || index >= rows.length - 50),
  );
});

test.each(tables)('all rows of %s read back byte for byte as .NET wrote them', { tags: ['slow'] }, async (table) => {
  await expectToReadBack(table, existingRows(table));
});
