import { expect, test } from 'vitest';
import { lookAt, openPart, recordDrawnTexts, useConsole } from '../console.ts';
import { testCharts } from '../console-flows/charts.ts';

/** Charts and logs of the tests' model. */

const harness = await useConsole(import.meta.url);
const { product, open } = harness;

testCharts(harness);

test('shows the counts of a series whose keys do not follow each other in time', async () => {
  const counts = { 1: 4, 5: 7 };
  expect((await product.as('hr')('PATCH', '/api/deskweekdays/Oslo/D1', { body: { counts } })).status).toBe(204);
  const page = await open('#/entities/deskweekdays', 'hr');
  const drawnTexts = await recordDrawnTexts(page);
  await page.reload();
  const field = (name: string) => page.getByRole('main').getByRole('textbox', { name });
  expect(await field('from').count()).toBe(0);
  await field('office').fill('Oslo');
  await field('desk').fill('D1');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('11 in 7 slots, most at 5: 7').waitFor();
  await page.locator('.chart canvas').waitFor();
  await lookAt(page, 'chart-without-span');
  await expect.poll(drawnTexts).toEqual(expect.arrayContaining(['1', '7']));
  await openPart(page, 'Counts as a table');
  const table = page.getByRole('region', { name: 'Counts of deskweekdays' });
  expect(await table.getByRole('row').nth(1).textContent()).toBe('14');
  // A single count makes an axis whose own steps would be fractions.
  const few = { 1: 1 };
  expect((await product.as('hr')('PATCH', '/api/deskweekdays/Oslo/D3', { body: { counts: few } })).status).toBe(204);
  await field('desk').fill('D3');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('1 in 7 slots, most at 1: 1').waitFor();
  expect((await drawnTexts()).filter((text) => text.includes('.'))).toEqual([]);
  await field('desk').fill('D2');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('Nothing was counted.').waitFor();
});
