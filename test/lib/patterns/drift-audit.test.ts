import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/patterns/define-entity.ts';
import { auditPage } from '../../../lib/patterns/drift-audit.ts';
import { createEntity } from '../../../lib/patterns/entity-store.ts';
import { intraPartitionIndex } from '../../../lib/patterns/indexes.ts';
import { explain } from '../../../lib/storage/explain.ts';
import { tryAction } from '../../../lib/storage/rows.ts';
import { openWorld } from '../../world.ts';

test('a repair that is explained is told of once, as it would be made', async () => {
  const things = defineEntity('things', {
    schema: z.object({ a: z.string(), b: z.string(), c: z.string() }),
    table: 'things',
    key: { partition: '{a}', row: 'b_{b}' },
    indexes: { copy: intraPartitionIndex({ row: 'c_{c}' }) },
    access: { read: ['hr'], write: ['hr'] },
  });
  const { engine, storage } = await openWorld(import.meta.url, [things]);
  await createEntity(engine, things, { a: 'one', b: '1', c: '1' });
  await tryAction(storage, { table: 'things', partition: 'one' }, { kind: 'delete', row: 'c_1' });
  const steps = await explain(() => auditPage(engine, things, { top: 10, repair: true, patience: 0 }));
  expect(steps.filter((step) => 'write' in step)).toEqual([
    expect.objectContaining({ write: 'rows', table: 'things' }),
  ]);
});
