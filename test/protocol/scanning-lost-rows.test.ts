import { expect, test } from 'vitest';
import { categories, products } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { openWorld } from '../world.ts';

const { engine, storage } = await openWorld(import.meta.url);

test('a scan for an export goes on at an entity that lost a row, with null for what the row may have had', async () => {
  await engineWrite.createEntity(engine, categories, { categoryId: 1 });
  const product = { categoryId: 1, productName: 'Tea', description: 'Green', specification: '100 g' };
  for (const productId of [1, 2, 3]) await engineWrite.createEntity(engine, products, { ...product, productId });
  await storage.table('products').deleteEntity('00001', '00000002!-text');
  await expect(engineRead.scanEntities(engine, products, { top: 10 })).rejects.toSatisfy((error) =>
    baseValues.hasCode(error, 'needs-repair'),
  );
  const { items } = await engineRead.scanEntities(engine, products, { top: 10, marksLost: true });
  expect(JSON.parse(JSON.stringify(items))).toEqual([
    { ...product, productId: 1 },
    { ...product, productId: 2, description: null, specification: null },
    { ...product, productId: 3 },
  ]);
});
