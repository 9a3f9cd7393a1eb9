import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/patterns/define-entity.ts';
import { createEntity } from '../../../lib/patterns/entity-store.ts';
import { type IntraPartitionIndex, intraPartitionIndex } from '../../../lib/patterns/indexes.ts';
import { readByCopies } from '../../../lib/patterns/read-through-index.ts';
import { openWorld } from '../../world.ts';

test.each(['everything', 'keys'] as const)('an entity is not taken for a copy of %s under its key', async (copies) => {
  const things = defineEntity('things', {
    schema: z.object({ a: z.string(), b: z.string(), c: z.string() }),
    table: 'things',
    key: { partition: '{a}', row: '{b}' },
    indexes: { c: intraPartitionIndex({ row: 'c_{c}_{b}', copies }) },
    access: { read: ['hr'], write: ['hr'] },
  });
  const { engine } = await openWorld(import.meta.url, [things]);
  const found = { a: copies, b: '2', c: 'x' };
  for (const values of [found, { a: copies, b: 'c_x_1', c: 'another' }]) await createEntity(engine, things, values);
  const index = things.indexes.c as IntraPartitionIndex;
  const { items } = await readByCopies(engine, things, index, { a: copies, c: 'x' }, { top: 10 });
  expect(items).toEqual([found]);
});
