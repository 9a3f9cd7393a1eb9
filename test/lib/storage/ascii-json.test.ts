import { beforeAll, expect, test } from 'vitest';
import { createTable } from '../../../lib/storage/provision.ts';
import { readRow, submit } from '../../../lib/storage/rows.ts';
import { openStorage } from '../../../lib/storage/storage.ts';
import { testStorage } from '../../storage.ts';

const storage = openStorage({ connectionString: testStorage(import.meta.url) });
const table = 'letters';
beforeAll(() => createTable(storage, table));

// Azurite corrupts a character that spans two chunks of 64 KiB; the service does not.
test('reads large rows and transactions of any letters back from the emulator unchanged', async () => {
  const Text = 'ß🙂é'.repeat(6_000);
  for (const shift of ['', 'x', 'xy', 'xyz']) {
    const properties = { Shift: shift, Text, More: Text, Most: Text };
    const actions = ['a', 'b', 'c'].map((row) => ({ kind: 'upsert', row: row + shift, properties }) as const);
    await submit(storage, { table, partition: 'p', actions });
    await submit(storage, { table, partition: 'p', actions: [{ kind: 'upsert', row: `alone${shift}`, properties }] });
    for (const row of [...actions.map((action) => action.row), `alone${shift}`]) {
      const found = await readRow(storage, { table, partition: 'p', row });
      expect(
        [found?.properties.Text === Text, found?.properties.More === Text, found?.properties.Most === Text],
        row,
      ).toEqual([true, true, true]);
    }
  }
});
