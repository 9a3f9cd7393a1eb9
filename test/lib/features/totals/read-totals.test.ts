import pMap from 'p-map';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, total } from '../../../../lib/define.ts';
import { readTotals } from '../../../../lib/features/totals/read-totals.ts';
import { defineKeys } from '../../../kit/define.ts';
import { engineCore } from '../../../kit/engine.ts';
import { storageAccounts, storageRows, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

test('a page of many buckets has fewer groups, and no group is lost', { tags: ['slow'] }, async () => {
  const things = defineEntity('things', {
    schema: z.object({ id: z.string().min(1), day: z.string().min(1) }),
    table: 'things',
    key: { partition: '{id}', row: 'thing' },
    totals: { perDay: total({ table: 'thingsperday', partition: 'all_{id%256}', row: '{day}' }) },
    access: { read: ['reader'], write: ['reader'] },
  });
  const [entity] = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [things] }).list;
  const declared = entity?.totals.perDay;
  if (!entity || !declared) throw new Error('The total is declared.');
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  await storageTables.createTable(storage, 'thingsperday');
  const days = Array.from({ length: 33 }, (_, at) => `day${String(at).padStart(2, '0')}`);
  const properties = { EntityType: 'total', Amounts: JSON.stringify({ count: 1, sum: {}, min: {}, max: {} }) };
  await pMap(
    defineKeys.buildKeys(declared.partition, {}),
    (partition) => {
      const rows = days.map((day) => defineKeys.buildKey(declared.totalRow, { day }));
      const actions = rows.map((row) => ({ kind: 'insert', row, properties }) as const);
      return storageRows.submit(storage, { table: 'thingsperday', partition, actions });
    },
    { concurrency: 8 },
  );
  const engine = engineCore.createEngine(storage);
  const first = await readTotals(engine, entity, declared, {}, { top: 1_000 });
  expect(first.items.length).toBeLessThanOrEqual(8_000 / 256);
  const rest = await readTotals(engine, entity, declared, {}, { top: 1_000, after: first.next });
  const all = [...first.items, ...rest.items];
  expect(all).toEqual(days.map((day) => expect.objectContaining({ group: { day }, count: 256 })));
  expect(rest.next).toBeUndefined();
});
