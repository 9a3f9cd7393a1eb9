import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { createInspectCommand } from '../../../local/cli/inspect-command.ts';
import { storageAccounts, storageRows } from '../../kit/storage.ts';
import { logRows, shopRows } from '../inspect/shapes.ts';

async function openShop() {
  const storage = storageAccounts.openStorage(createMemoryStorage());
  const rows = [...shopRows(10), ...logRows(1, 3).map((row) => ({ ...row, table: 'logs202603' }))];
  for (const table of ['logs202601', 'logs202602', 'logs202603', 'ShopData']) await storage.table(table).createTable();
  for (const { table, partition, row, properties } of rows)
    await storageRows.submit(storage, { table, partition, actions: [{ kind: 'insert', row, properties }] });
  return storage;
}

async function run(...given: string[]) {
  const storage = await openShop();
  const [printed, said]: [string[], string[]] = [[], []];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean(printed.push(String(text))));
  vi.spyOn(console, 'error').mockImplementation((line) => void said.push(String(line)));
  onTestFinished(() => void vi.restoreAllMocks());
  const command = createInspectCommand(async () => storage);
  await command.exitOverride().parseAsync(given, { from: 'user' });
  return { printed: printed.join(''), said: said.join('\n') };
}

test('prints a model of the tables, and what reading them took', async () => {
  const { printed, said } = await run();
  expect(printed).toContain("import { defineEntity, defineModel } from 'rowkey';");
  expect(printed).toContain("key: { partition: 'C-{customerId:6}', row: 'customer' },");
  expect(printed).toContain("loyaltyPoints: { name: 'LoyaltyPoints', type: 'Int64' },");
  expect(printed).toContain('entities: [logs202603, customers, orders],');
  expect(said).toBe(
    [
      'logs202601 is not read: one of 3 tables with a number, of which logs202603 is read.',
      'logs202602 is not read: one of 3 tables with a number, of which logs202603 is read.',
      '28 rows of 2 tables read, 3 storage transactions.',
    ].join('\n'),
  );
});

test('reads the named tables, and writes to a file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-inspect-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const out = join(folder, 'existing.ts');
  const { printed, said } = await run('--table', 'shopdata', '--sample', '10', '--reads', '2', '--out', out);
  expect(printed).toBe('');
  expect(await readFile(out, 'utf8')).toMatch(/^\/\/ Table ShopData: \d rows in the sample; the table has more\./m);
  expect(said).toMatch(/, [1-5] storage transactions\.$/);
  await expect(run('--table', 'other')).rejects.toThrow('The storage account has no table other.');
});
