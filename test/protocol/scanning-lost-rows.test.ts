import { expect, test } from 'vitest';
import { hasCode } from '../../lib/base/errors.ts';
import { scanEntities } from '../../lib/engine/read/retrieve.ts';
import { createEntity } from '../../lib/engine/write/entity-store.ts';
import { categories, products } from '../fixtures/model.ts';
import { openWorld } from '../world.ts';

const { engine, storage } = await openWorld(import.meta.url);

test('a scan for an export goes on at an entity that lost a row, with null for what the row may have had', async () => {
  await createEntity(engine, categories, { categoryId: 1 });
  const product = { categoryId: 1, productName: 'Tea', description: 'Green', specification: '100 g' };
  for (const productId of [1, 2, 3]) await createEntity(engine, products, { ...product, productId });
  await storage.table('products').deleteEntity('00001', '00000002!-text');
  await expect(scanEntities(engine, products, { top: 10 })).rejects.toSatisfy((error) =>
    hasCode(error, 'needs-repair'),
  );
  const { items } = await scanEntities(engine, products, { top: 10, marksLost: true });
  expect(JSON.parse(JSON.stringify(items))).toEqual([
    { ...product, productId: 1 },
    { ...product, productId: 2, description: null, specification: null },
    { ...product, productId: 3 },
  ]);
});
