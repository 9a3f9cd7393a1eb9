import { beforeAll, expect, test } from 'vitest';
import { type ConsoleHarness, lookAt, openPart, recordDrawnTexts } from '../console.ts';
import type { Client } from '../product.ts';
import { somebody } from '../world.ts';

const EMPLOYEE = '000123';

/** Charts and logs of a model with hours, years and expenses of employees. */
export function testCharts({ product, open }: ConsoleHarness): void {
  let hr: Client;

  beforeAll(async () => {
    hr = product.as('hr');
    const body = somebody({ department: 'Sales', employeeId: EMPLOYEE });
    expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
    for (const [day, counts] of [
      ['2026-11-19', { 22: 4 }],
      ['2026-11-20', { 8: 3, 9: 5 }],
    ] as const)
      expect((await hr('PATCH', `/api/messagehours/${EMPLOYEE}/${day}`, { body: { counts } })).status).toBe(204);
  });

  test('shows the counts of a span as a chart and as a table', async () => {
    const page = await open(`#/entities/messagehours/chart?employeeId=${EMPLOYEE}&from=2026-11-19&to=2026-11-20`, 'hr');
    const drawnTexts = await recordDrawnTexts(page);
    await page.reload();
    await page.getByText('12 in 48 slots, most at 2026-11-20 09:00:00 UTC: 5').waitFor();
    await page.locator('.chart canvas').waitFor();
    await lookAt(page, 'chart');
    await expect.poll(drawnTexts).toEqual(expect.arrayContaining(['2026-11-19', '11-20', '12:00']));
    await openPart(page, 'Counts as a table');
    const table = page.getByRole('region', { name: 'Counts of messagehours' });
    expect(await table.getByRole('row').nth(1).textContent()).toBe('2026-11-19 00:00:00 UTC0');
    await page.getByRole('button', { name: 'last 7 days' }).click();
    await page.getByText(/in 168 slots/).waitFor();
    expect(page.url()).toContain('from=');
  });

  test('begins with the newest counts, however old they are', async () => {
    const employeeId = '000124';
    const day = new Date(Date.now() - 20 * 86_400_000).toISOString().slice(0, 10);
    const path = `/api/messagehours/${employeeId}/${day}`;
    expect((await hr('PATCH', path, { body: { counts: { 8: 3, 9: 5 } } })).status).toBe(204);
    const page = await open('#/entities/messagehours', 'hr');
    await page.getByRole('textbox', { name: 'employeeId' }).fill(employeeId);
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText(`8 in 24 slots, most at ${day} 09:00:00 UTC: 5`).waitFor();
    await page.getByRole('button', { name: 'last 7 days' }).click();
    await page.getByText('0 in 168 slots').waitFor();
    await page.locator('.chart canvas').waitFor();
    await lookAt(page, 'chart-of-nothing');
    await page.getByRole('link', { name: 'Show the newest counts' }).click();
    await page.getByText('8 in 24 slots').waitFor();
    await page.getByRole('textbox', { name: 'employeeId' }).fill('000125');
    await page.getByRole('textbox', { name: 'from' }).fill('');
    await page.getByRole('textbox', { name: 'to' }).fill('');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('Nothing was counted in the last year.').waitFor();
  });

  test('shows days of a year', async () => {
    const path = `/api/messageyears/${EMPLOYEE}/2026`;
    expect((await hr('PATCH', path, { body: { counts: { 1: 7, 200: 9, 366: 1 } } })).status).toBe(204);
    const page = await open(`#/entities/messageyears/chart?employeeId=${EMPLOYEE}&from=2026&to=2026`, 'hr');
    await page.getByText(/^16 in 365 slots/).waitFor();
    await page.locator('.chart canvas').waitFor();
    await lookAt(page, 'chart-of-a-year');
  });

  test('says which bounds a chart accepts', async () => {
    const page = await open(`#/entities/messagehours/chart?employeeId=${EMPLOYEE}&from=1900&to=2026`, 'hr');
    await page.getByRole('alert').getByText('Validation failed').waitFor();
  });

  test('shows the newest rows of a log on top as they arrive, and pauses', async () => {
    const add = async (amount: number, category: string) => {
      const body = { employeeId: EMPLOYEE, amount, category };
      expect((await hr('POST', '/api/expenses', { body })).status).toBe(201);
    };
    await add(10, 'Meals');
    await add(20, 'Meals');
    const page = await open('#/entities/expenses/live', 'hr');
    await page.getByLabel('employeeId').fill(EMPLOYEE);
    await page.getByRole('button', { name: 'Follow' }).click();
    await page.getByText('2 rows, read every 3 seconds').waitFor();
    await add(30, 'Travel');
    await page.getByText('3 rows, read every 3 seconds').waitFor();
    const rows = page.getByRole('region', { name: 'Newest rows of expenses' }).getByRole('row');
    expect(await rows.nth(1).textContent()).toContain('Travel');
    await lookAt(page, 'log');
    await page.getByRole('button', { name: 'Pause' }).click();
    await add(40, 'Travel');
    await page.getByText('3 rows, paused').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('4 rows, read every 3 seconds').waitFor();
  });

  test('shows charts and logs only of entities that have them, to roles that read them', async () => {
    const page = await open('#/entities/departments', 'reader');
    const tabs = page.getByRole('navigation', { name: 'Views of departments' }).getByRole('link');
    expect(await tabs.allTextContents()).not.toContain('Chart');
    expect(await tabs.allTextContents()).not.toContain('Live');
  });
}
