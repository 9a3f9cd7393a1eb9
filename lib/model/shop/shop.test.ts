import { existsSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { PATIENCE_MS } from '../../../test/patience.ts';
import { useStartProcess } from '../../../test/start-process.ts';

const started = useStartProcess({ deployed: true });

async function read(path: string): Promise<unknown> {
  return (await (await started.process.as('reader'))('GET', path)).json();
}

async function itemsOf(path: string) {
  return ((await read(path)) as { items: { customerId: string }[] }).items;
}

test('npm start loads the sample shop', async () => {
  expect(await itemsOf('orders/HARBR')).toHaveLength(2);
  await vi.waitFor(
    async () =>
      expect(await itemsOf('customers/by/cityAndLastName/London/Fenn')).toMatchObject([{ customerId: 'HARBR' }]),
    { timeout: PATIENCE_MS },
  );
});

test.skipIf(!existsSync('../shared/data/northwind-orders.csv'))(
  'npm run import loads Northwind (needs ../shared/data/northwind-*.csv)',
  async () => {
    for (const [entity, count] of [
      ['customers', 91],
      ['products', 77],
      ['orders', 830],
    ] as const) {
      const file = `../shared/data/northwind-${entity}.csv`;
      const { code, said } = await started.process.run('import', entity, file);
      expect({ code, said }).toEqual({ code: 0, said: expect.stringContaining(`${count} read: ${count} created`) });
    }
    expect(await itemsOf('products/1')).toHaveLength(12);
    expect(await itemsOf('orders/VINET')).toHaveLength(5);
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
