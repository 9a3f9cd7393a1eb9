import { beforeAll, expect, test } from 'vitest';
import { storageAccounts, storageRows, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
const table = 'letters';
beforeAll(() => storageTables.createTable(storage, table));

// Azurite corrupts a character that spans two chunks of 64 KiB; the service does not.
test('reads large rows and transactions of any letters back from the emulator unchanged', {
  tags: ['slow'],
}, async () => {
  const Text = 'ß🙂é'.repeat(6_000);
  for (const shift of ['', 'x', 'xy', 'xyz']) {
    const properties = { Shift: shift, Text, More: Text, Most: Text };
    const actions = ['a', 'b', 'c'].map((row) => ({ kind: 'upsert', row: row + shift, properties }) as const);
    await storageRows.submit(storage, { table, partition: 'p', actions });
    await storageRows.submit(storage, {
      table,
      partition: 'p',
      actions: [{ kind: 'upsert', row: `alone${shift}`, properties }],
    });
    for (const row of [...actions.map((action) => action.row), `alone${shift}`]) {
      const found = await storageRows.readRow(storage, { table, partition: 'p', row });
      expect(
        [found?.properties.Text === Text, found?.properties.More === Text, found?.properties.Most === Text],
        row,
      ).toEqual([true, true, true]);
    }
  }
});
