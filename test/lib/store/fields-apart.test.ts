import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../../lib/define.ts';
import { createTestStore } from '../../../lib/testing/index.ts';
import { costOf } from '../../cost-of.ts';

/** Fields that other writers change, or that are under load of their own, are entities under the same key: docs/reference/model.md. */

const id = { depot: z.string(), productId: z.string() };
const access = { read: ['clerk'], write: ['clerk'] };
const products = defineEntity('products', {
  schema: z.object({ ...id, name: z.string(), manual: z.string().optional() }),
  table: 'products',
  key: { partition: '{depot}', row: 'product_{productId}' },
  split: { text: ['manual'] },
  access,
});
const stocks = defineEntity('stocks', {
  schema: z.object({ ...id, units: z.int32(), shelf: z.string().optional() }),
  table: 'products',
  key: { partition: '{depot}', row: 'stock_{productId}' },
  references: { productId: { to: products, onDelete: 'refuse' } },
  access,
});
const prices = defineEntity('prices', {
  schema: z.object({ ...id, price: z.number() }),
  table: 'prices',
  key: { partition: '{depot}_{productId}', row: 'price' },
  references: { productId: { to: products, onDelete: 'refuse' } },
  access,
});
/** Without a reference, a change needs no read. */
const views = defineEntity('views', {
  schema: z.object({ ...id, seen: z.int32() }),
  table: 'views',
  key: { partition: '{depot}_{productId}', row: 'views' },
  access,
});
const model = defineModel({ roles: ['clerk'], operatorRole: 'clerk', entities: [products, stocks, prices, views] });

const key = { depot: 'north', productId: '1' };
async function open() {
  const { store, storage } = await createTestStore(model);
  await store.transact([
    { products: { create: { ...key, name: 'Bolt', manual: 'Turn' } } },
    { stocks: { create: { ...key, units: 9 } } },
  ]);
  await store.prices.create({ ...key, price: 2 });
  await store.views.create({ ...key, seen: 0 });
  /** The row keys in the requests that change something, while `work` runs. */
  const rowsWrittenBy = async (work: () => Promise<unknown>) => {
    const rows: string[] = [];
    storage.intercept = (request, send) => {
      const body = decodeURIComponent(`${request.url} ${request.body ?? ''}`);
      if (request.method !== 'GET')
        rows.push(...Array.from(body.matchAll(/RowKey[='":]+([^'"]+)/g), ([, row]) => `${row}`));
      return send();
    };
    await work();
    storage.intercept = undefined;
    return [...new Set(rows)].toSorted();
  };
  return { store, rowsWrittenBy };
}

test('an entity beside another one has an ETag of its own: writers of the one never conflict with those of the other', async () => {
  const { store, rowsWrittenBy } = await open();
  const [product, stock] = [await store.products.get(key), await store.stocks.get(key)];
  const sell = () => store.stocks.update(key, { units: 8 }, { ifMatch: stock?.etag ?? '' });
  expect(await rowsWrittenBy(sell)).toEqual(['stock_1']);
  expect((await store.products.get(key))?.etag).toBe(product?.etag);
  const rename = () => store.products.update(key, { name: 'Nut' }, { ifMatch: product?.etag ?? '' });
  expect(await rowsWrittenBy(rename)).toEqual(['product_1']);
  // A group of `split` shares the ETag of its entity.
  const before = (await store.products.get(key))?.etag ?? '';
  const write = () => store.products.update(key, { manual: 'Push' });
  expect(await rowsWrittenBy(write)).toEqual(['product_1', 'product_1!-text']);
  await expect(store.products.update(key, { name: 'Bolt' }, { ifMatch: before })).rejects.toMatchObject({
    code: 'etag-mismatch',
  });
  expect(await rowsWrittenBy(() => store.prices.update(key, { price: 3 }))).toEqual(['price']);
});

test('an entity beside another one cannot exist without it, and both are changed and deleted in one transaction', async () => {
  const { store } = await open();
  await expect(store.stocks.create({ ...key, productId: '2', units: 1 })).rejects.toMatchObject({ field: 'productId' });
  await store.transact([{ products: { patch: { ...key, name: 'Nut' } } }, { stocks: { patch: { ...key, units: 7 } } }]);
  const [product, stock] = await Promise.all([store.products.get(key), store.stocks.get(key)]);
  expect([product?.values, stock?.values]).toMatchObject([{ name: 'Nut' }, { units: 7 }]);
  const deleteBoth = () => store.transact([{ stocks: { delete: key } }, { products: { delete: key } }]);
  // The price, in another table, is deleted first.
  await expect(deleteBoth()).rejects.toMatchObject({ code: 'referenced' });
  await store.prices.delete(key);
  await expect(store.products.delete(key)).rejects.toMatchObject({ code: 'referenced' });
  await deleteBoth();
  expect([await store.products.get(key), await store.stocks.get(key)]).toEqual([undefined, undefined]);
});

test('the transactions of fields apart are those that docs/reference/model.md states', async () => {
  const { store } = await open();
  const minimal = { return: 'minimal' } as const;
  expect({
    group: await costOf(() => store.products.update(key, { manual: 'Pull' })),
    beside: await costOf(() => store.stocks.update(key, { units: 6 })),
    inAnotherTable: await costOf(() => store.prices.update(key, { price: 3 })),
    withoutReference: await costOf(() => store.views.update(key, { seen: 1 }, minimal)),
    readWithGroup: await costOf(() => store.products.get(key, { include: ['text'] })),
    readBoth: await costOf(() => Promise.all([store.products.get(key), store.stocks.get(key)])),
  }).toEqual({ group: 2, beside: 2, inAnotherTable: 2, withoutReference: 1, readWithGroup: 1, readBoth: 2 });
});
