import { beforeAll, expect, test } from 'vitest';
import { type ConsoleHarness, lookAt } from '../console.ts';
import { somebody } from '../world.ts';

const PEOPLE = 2_500;

/** Lists of a model with employees and people. It has no employee in the department Sales before. */
export function testBrowsing({ product, open }: ConsoleHarness): void {
  beforeAll(async () => {
    const hr = product.as('hr');
    for (const [n, jobTitle] of ['Clerk', 'Buyer', 'Sales Manager'].entries()) {
      const body = somebody({ department: 'Sales', employeeId: `00010${n}`, email: `p${n}@contoso.com`, jobTitle });
      expect((await hr('POST', '/api/employees', { body: { ...body, nationalId: `N-${n}` } })).status).toBe(201);
    }
    const slices = Array.from({ length: PEOPLE / 100 }, (_, slice) =>
      Array.from({ length: 100 }, (_, n) => {
        const personId = String(slice * 100 + n).padStart(6, '0');
        return { put: { country: 'NZ', personId, firstName: `Ann ${personId}`, kind: 'employee', jobTitle: 'Clerk' } };
      }),
    );
    for (const actions of slices)
      expect((await hr('POST', '/api/people/batch', { body: { actions } })).status).toBe(200);
  });

  test('lists a partition, and finds a row by an index, by keyboard alone', async () => {
    const page = await open('#/entities/employees', 'reader');
    await page.getByRole('textbox', { name: 'department', exact: true }).focus();
    await page.keyboard.type('Sales');
    await page.keyboard.press('Enter');
    await page.getByText('3 rows').waitFor();
    await page.getByLabel('Read by').selectOption({ label: 'index emailCompanyWide' });
    await page.getByRole('textbox', { name: 'email' }).focus();
    await page.keyboard.type('p1@contoso.com');
    await page.keyboard.press('Enter');
    await page.getByText('1 row · 1 transaction').waitFor();
    await lookAt(page, 'lookup');
    await page.getByRole('link', { name: 'Sales / 000101' }).press('Enter');
    await page.getByRole('heading', { name: 'Sales / 000101' }).waitFor();
    await page.getByText('Buyer').waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy as JSON' }).press('Enter');
    await page.getByText('Copied.').waitFor();
    expect(JSON.parse(await page.evaluate('navigator.clipboard.readText()'))).toMatchObject({ jobTitle: 'Buyer' });
    // The role may not read it, so it does not reach the page.
    expect(await page.content()).not.toContain('nationalId');
    await lookAt(page, 'row-of-reader');
  });

  test('filters a list, bounds a range and chooses columns', async () => {
    const page = await open('#/entities/employees/rows?key.department=Sales', 'hr');
    await page.getByText('3 rows').waitFor();
    await page.getByText('Filters').click();
    await page.getByRole('button', { name: 'Add a filter' }).click();
    await page.getByLabel('Field').selectOption('jobTitle');
    await page.getByLabel('Comparison').selectOption({ label: 'one of' });
    await page.getByLabel('Value').fill('Clerk, Buyer');
    await page.getByText('Columns').click();
    await page.getByRole('checkbox', { name: 'jobTitle' }).check();
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByText('2 rows').waitFor();
    expect(await page.getByRole('columnheader').allTextContents()).toEqual(['department', 'employeeId', 'jobTitle']);
    await lookAt(page, 'filtered');
    await page.getByLabel('employeeId from').fill('000101');
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByText('1 row ·').waitFor();
    // The address has the query.
    await page.reload();
    await page.getByText('1 row ·').waitFor();
  });

  test('reads a long partition as the user scrolls, and keeps few rows in the page', async () => {
    const page = await open('#/entities/people/rows?key.country=NZ', 'reader');
    await page.getByText('100 rows so far').waitFor();
    const region = page.getByRole('region', { name: 'Rows of people' });
    while ((await page.getByText('2,500 rows').count()) === 0)
      await region.evaluate((element: { scrollTop: number; readonly scrollHeight: number }) => {
        element.scrollTop = element.scrollHeight;
      });
    await region.evaluate((element: { scrollTop: number; readonly scrollHeight: number }) => {
      element.scrollTop = element.scrollHeight;
    });
    await page.getByRole('link', { name: 'NZ / 002499' }).waitFor();
    expect(await region.getByRole('row').count()).toBeLessThan(80);
    await lookAt(page, 'long-list');
  });
}
