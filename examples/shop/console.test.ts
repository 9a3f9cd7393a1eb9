import { expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { lookAt, openPart, useConsole } from '../../test/console.ts';
import { testTotals } from '../../test/console-flows/totals.ts';

/** The console on orders: totals, and a list of the newest that leaves rows out. */

const harness = await useConsole(import.meta.url, { app: deployedApp });
const { product, open } = harness;
const customerId = 'TOTAL';
const order = (orderId: number, orderDate: string) =>
  ['orders', { customerId, orderId, orderDate, freight: 2.5 }] as const;

testTotals(harness, {
  entity: 'orders',
  totals: 'byMonth',
  rows: [
    ['customers', { city: 'London', customerId, companyName: 'Totals Ltd' }],
    order(1, '2026-10-01'),
    order(2, '2026-11-01'),
  ],
  group: { customerId, orderDate: '2026-10' },
});

test('says where a row without a field of an index is not listed', async () => {
  const placed = { customerId, orderId: 3, orderDate: '2026-11-02', placedAt: '2026-11-02T09:00:00.000Z' };
  expect((await product.as('hr')('POST', '/api/orders', { body: placed })).status).toBe(201);
  const reason = 'Rows without placedAt are not in the index latest, so this page does not show them.';
  const page = await open(`#/entities/orders/live?customerId=${customerId}`, 'hr');
  await page.getByText(reason).waitFor();
  await page.getByText('1 row, read every 3 seconds').waitFor();
  await lookAt(page, 'live-with-a-reason');
  const list = await open(`#/entities/orders/rows?by=latest&key.customerId=${customerId}`, 'hr');
  await list.getByText('copies whole rows. Rows without placedAt are not in it.').waitFor();
  await list.getByText('1 row ·').waitFor();
  const row = await open(`#/entities/orders/rows/${customerId}/1`, 'hr');
  await openPart(row, 'Where it is stored');
  await row.getByText('The row is not in the index latest (no placedAt).').waitFor();
  // A reference has the label of the row to which it leads.
  await row.getByRole('link', { name: `Totals Ltd · ${customerId}` }).waitFor();
  await lookAt(row, 'row-not-in-an-index');
  await row.goto(new URL(`/console/#/entities/orders/rows/${customerId}/3`, product.url).href);
  await openPart(row, 'Where it is stored');
  await row.getByRole('region', { name: 'Rows and index entries' }).getByText('index entry: latest').waitFor();
  expect(await row.getByText('The row is not in').count()).toBe(0);
});

test('shows where a row is stored that cannot be deleted, and offers no delete', async () => {
  const create = async (id: string) => {
    const body = { city: 'London', customerId: id, companyName: 'Kept', contactName: "Ada O'Hara" };
    expect((await product.as('hr')('POST', '/api/customers', { body })).status).toBe(201);
    return `#/entities/customers/rows/London/${id}`;
  };
  const [kept, free] = [await create('KEPT'), await create('FREE')];
  const body = { customerId: 'KEPT', orderId: 4, orderDate: '2026-11-03', freight: 1 };
  expect((await product.as('hr')('POST', '/api/orders', { body })).status).toBe(201);
  const page = await open(kept, 'hr');
  const places = async (hash: string) => {
    await page.goto(new URL(`/console/${hash}`, product.url).href);
    await openPart(page, 'Where it is stored');
    const table = page.getByRole('region', { name: 'Rows and index entries' });
    await table.waitFor();
    return (await table.getByRole('row').allTextContents()).slice(1).toSorted();
  };
  // The places of a row that can be deleted are those of its explained delete.
  const others = await places(free);
  expect(others).toHaveLength(3);
  const explained = others.map((text) => text.replaceAll('FREE', 'KEPT'));
  const withoutHash = (texts: readonly string[]) =>
    texts.map((text) => text.replace(/(customersbyid)[0-9a-f]{2}/, '$1'));
  expect(withoutHash(await places(kept))).toEqual(withoutHash(explained));
  await page
    .getByText('Only the row and its index entries are listed: the other places are those that a delete changes')
    .waitFor();
  await lookAt(page, 'row-that-others-refer-to');
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('cannot be deleted: orders refer to it').waitFor();
  expect(await dialog.getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true);
  expect(await dialog.getByText('can be undone').count()).toBe(0);
  await lookAt(page, 'delete-that-is-refused');
  const reader = await open(free, 'reader');
  await openPart(reader, 'Where it is stored');
  await reader.getByText('roles that may delete the row').waitFor();
  const table = reader.getByRole('region', { name: 'Rows and index entries' });
  expect((await table.getByRole('row').allTextContents()).slice(1).toSorted()).toEqual(others);
});
