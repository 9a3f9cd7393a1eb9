import { beforeAll, expect, test } from 'vitest';
import { type ConsoleHarness, lookAt, openPart } from '../console.ts';
import { somebody } from '../world.ts';

const PEOPLE = 2_500;

/** Lists and addresses of a model with employees, people and messagehours. It has no employee in the department Sales before. */
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
    await openPart(page, 'Filters');
    await page.getByRole('button', { name: 'Add a filter' }).click();
    await page.getByLabel('Field').selectOption('jobTitle');
    await page.getByLabel('Comparison').selectOption({ label: 'one of' });
    await page.getByLabel('Value').fill('Clerk, Buyer');
    await openPart(page, 'Columns');
    await page.getByRole('checkbox', { name: 'jobTitle' }).check();
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByText('2 rows').waitFor();
    expect(await page.getByRole('columnheader').allTextContents()).toEqual(['employeeId', 'jobTitle']);
    await lookAt(page, 'filtered');
    await page.getByLabel('employeeId from').fill('000101');
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByText('1 row ·').waitFor();
    // The address has the query.
    await page.reload();
    await page.getByText('1 row ·').waitFor();
  });

  test.each([390, 1280])('keeps the link of a row in view where keys are UUIDs, at %d pixels', async (width) => {
    const employeeId = '000100';
    for (const category of ['Travel', 'Meals'])
      expect(
        (await product.as('hr')('POST', '/api/expenses', { body: { employeeId, category, amount: 3 } })).status,
      ).toBe(201);
    const page = await open('', 'hr');
    await page.setViewportSize({ width, height: 800 });
    await page.goto(new URL(`/console/#/entities/expenses/rows?key.employeeId=${employeeId}`, product.url).href);
    const region = page.getByRole('region', { name: 'Rows of expenses' });
    await region.waitFor();
    const columns = ['category', 'at', 'amount', 'description', 'claimId'];
    // Those of the packs have a department, too.
    const shown = await region.getByRole('columnheader').allTextContents();
    expect(shown.filter((name) => name !== 'department')).toEqual(columns);
    await page.getByText(`employeeId ${employeeId} in each row`).waitFor();
    const link = region.getByRole('link', { name: '· Travel' }).first();
    expect(await link.textContent()).toBe('Travel');
    const box = await link.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? width)).toBeLessThanOrEqual(width);
    await lookAt(page, `uuids-${width}`);
    await page.setViewportSize({ width, height: 800 });
    // A list of fields without the label has the link in a field of the key.
    await page.goto(`${page.url()}&columns=amount`);
    await expect.poll(() => region.getByRole('columnheader').allTextContents()).toEqual(['at', 'amount', 'claimId']);
    await region.getByRole('link', { name: '000100 / ' }).first().click();
    await page.getByRole('heading', { name: '000100 / ' }).waitFor();
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

  test('says that an address names an unknown index or column, and reads only what the address asks for', async () => {
    const page = await open('#/entities/employees/rows?by=nothing&key.department=Sales', 'hr');
    await page.getByText('employees has no index “nothing”, or your roles do not see it.').waitFor();
    expect(await page.getByRole('region', { name: 'Rows of employees' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByRole('region', { name: 'Rows of employees' }).waitFor();
    const search = 'key.department=Sales&columns=nothing,age,nationalId';
    // nationalId is hidden from the role.
    const other = await open(`#/entities/employees/rows?${search}`, 'reader');
    await other.getByText('The list has no columns “nothing”, “nationalId”, or your roles do not see them.').waitFor();
    await other.getByText('3 rows').waitFor();
    expect(await other.getByRole('columnheader').allTextContents()).toEqual(['employeeId', 'age']);
    await lookAt(other, 'unknown-column');
  });

  test('says that an address has no valid filter, and reads nothing without it', async () => {
    const where = ['jobTitle like Clerk', 'jobTitle ne Clerk']
      .map((text) => `where=${encodeURIComponent(text)}`)
      .join('&');
    const page = await open(`#/entities/employees/rows?key.department=Sales&${where}`, 'hr');
    await page.getByText('“jobTitle like Clerk” is no filter, so nothing was read.').waitFor();
    expect(await page.getByRole('region', { name: 'Rows of employees' }).count()).toBe(0);
    await lookAt(page, 'unknown-operator');
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByRole('region', { name: 'Rows of employees' }).waitFor();
    expect(await page.getByText('is no filter').count()).toBe(0);
  });

  test('says that an entity has no such view', async () => {
    const page = await open('#/entities/people/rowz', 'hr');
    await page.getByText('people has no view “rowz”, or your roles do not see it.').waitFor();
    expect(await page.getByLabel('country').count()).toBe(0);
    await lookAt(page, 'unknown-view');
    await page.getByRole('link', { name: 'Rows' }).click();
    await page.getByLabel('country').waitFor();
  });

  test.each([
    ['people/rowz', 'people', 'people has no view “rowz”, or your roles do not see it.', 'people'],
    ['nothing/rows', 'Entity not found', 'The model has no entity “nothing”.', 'the overview'],
    ['nothing/new', 'Entity not found', 'The model has no entity “nothing”.', 'the overview'],
    ['nothing/rows/a', 'Entity not found', 'The model has no entity “nothing”.', 'the overview'],
    ['people/rows/a', 'Row not found', 'The address needs a value of each key field: country / personId.', 'people'],
    ['messagehours/rows/1/2', 'Row not found', 'messagehours is a data series, whose counts are shown', 'messagehours'],
    ['messagehours/new', 'Form not found', 'messagehours is a data series, whose counts have no form.', 'messagehours'],
  ])('says what is wrong with the address %s, and links to what exists', async (path, heading, reason, target) => {
    const page = await open(`#/entities/${path}`, 'hr');
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    await page.getByRole('main').getByText(reason).waitFor();
    await page.getByRole('link', { name: `Back to ${target}` }).click();
    const found = target === 'the overview' ? 'Entities' : target;
    await page.getByRole('heading', { level: 1, name: found, exact: true }).waitFor();
  });
}
