import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { PATIENCE_MS } from '../../test/patience.ts';
import { IS_EVERY_POINT } from '../../test/points.ts';
import { shell, useStartProcess } from '../../test/start-process.ts';

const started = useStartProcess({ deployed: true });

async function read(path: string): Promise<unknown> {
  return (await (await started.process.as('reader'))('GET', path)).json();
}

async function itemsOf(path: string) {
  return ((await read(path)) as { items: { customerId: string }[] }).items;
}

test('npm start loads the sample shop', { tags: ['slow'] }, async () => {
  expect(await itemsOf('orders/HARBR')).toHaveLength(2);
  expect(await itemsOf('orders/by/latest/HARBR?top=1')).toMatchObject([{ orderId: 10_002 }]);
  expect(await read('orders/HARBR/10001?include=orderlines')).toMatchObject({
    orderDate: '2026-11-19',
    orderlines: [
      { productId: 901, quantity: 10 },
      { productId: 903, quantity: 1 },
    ],
  });
  expect(await read('vouchers/TEA4YOU1')).toMatchObject({ customerId: 'HARBR' });
  await vi.waitFor(
    async () =>
      expect(await itemsOf('vouchers/by/customer/HARBR')).toMatchObject([{ code: 'SPRING26' }, { code: 'TEA4YOU1' }]),
    { timeout: PATIENCE_MS },
  );
  await vi.waitFor(
    async () =>
      expect(await itemsOf('customers/by/cityAndLastName/London/Fenn')).toMatchObject([{ customerId: 'HARBR' }]),
    { timeout: PATIENCE_MS },
  );
});

test.skipIf(!IS_EVERY_POINT || !existsSync('../shared/data/northwind-orders.csv'))(
  'npm run import loads Northwind (needs ../shared/data/northwind-*.csv)',
  async () => {
    const data = '../shared/data/northwind';
    const lines = join(started.folder, 'order-lines.csv');
    const [addCustomers] = /^awk .*(?= > )/m.exec(await readFile('examples/shop/README.md', 'utf8')) ?? [];
    await shell(`cd ../shared/data && ${addCustomers} > ${lines}`);
    for (const [entity, count, file] of [
      ['customers', 91, `${data}-customers.csv`],
      ['products', 77, `${data}-products.csv`],
      ['orders', 830, `${data}-orders.csv`],
      ['orderlines', 2_155, lines],
    ] as const) {
      const { code, said } = await started.process.run('import', entity, file);
      expect({ code, said }).toEqual({ code: 0, said: expect.stringContaining(`${count} read: ${count} created`) });
    }
    expect(await itemsOf('products/1')).toHaveLength(12);
    expect(await itemsOf('orders/VINET')).toHaveLength(5);
    expect(await read('orders/ALFKI/10643?include=orderlines')).toMatchObject({
      orderDate: '1997-08-25',
      orderlines: [
        { productId: 28, quantity: 15, unitPrice: 45.6, discount: 0.25 },
        { productId: 39, quantity: 21 },
        { productId: 46, quantity: 2 },
      ],
    });
    await vi.waitFor(
      async () =>
        expect(await read('orders/totals/byMonth/ALFKI/1997-10')).toEqual({
          group: { customerId: 'ALFKI', orderDate: '1997-10' },
          count: 2,
          sum: { freight: 84.96 },
          min: { freight: 23.94 },
          max: { freight: 61.02 },
        }),
      { timeout: PATIENCE_MS },
    );
    await vi.waitFor(
      async () =>
        expect(await itemsOf('customers/by/cityAndLastName/London/Devon')).toMatchObject([{ customerId: 'EASTC' }]),
      { timeout: PATIENCE_MS },
    );
    await vi.waitFor(async () => expect(await itemsOf('orders/by/date/1998-05-06')).toHaveLength(4), {
      timeout: PATIENCE_MS,
    });
  },
);
