import { expect, test } from 'vitest';
import { lookAt, useConsole } from '../console.ts';
import { testBrowsing } from '../console-flows/browsing.ts';

const harness = await useConsole(import.meta.url);
const { product, open } = harness;

testBrowsing(harness);

test('shows the entities that the roles of the user see', async () => {
  const page = await open('', 'reader');
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  expect(await links.allTextContents()).toContain('employees');
  expect(await links.allTextContents()).not.toContain('reviews');
  await lookAt(page, 'overview');
});

test('keeps the header, the whole navigation and the costs in view, and scrolls only a page that is too long', async () => {
  const page = await open('', ['hr', 'operator']);
  await page.setViewportSize({ width: 1280, height: 500 });
  await page.goto(new URL('/console/#/operators/periods', product.url).href);
  await page.getByRole('heading', { name: 'Period tables' }).waitFor();
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  const last = navigation.getByRole('link').last();
  await last.scrollIntoViewIfNeeded();
  expect(await page.evaluate('document.documentElement.scrollHeight - innerHeight')).toBe(0);
  const [link, costs] = [await last.boundingBox(), await page.getByText('This page:').boundingBox()];
  expect((link?.y ?? 0) + (link?.height ?? 0)).toBeLessThanOrEqual(costs?.y ?? 0);
  await page.goto(new URL('/console/#/', product.url).href);
  await page.getByRole('heading', { level: 1, name: 'Entities' }).waitFor();
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
  expect((await page.getByRole('banner').boundingBox())?.y).toBe(0);
});

test('names the page in the title of its tab', async () => {
  const page = await open('#/entities/employees/rows/Sales/000101', 'hr');
  const seesTitle = (title: string) => expect.poll(() => page.title()).toBe(`${title} · Rowkey console`);
  await seesTitle('Sales / 000101 · employees');
  for (const [hash, title] of [
    ['#/entities/employees', 'employees'],
    ['#/entities/employees/new', 'New row · employees'],
    ['#/', 'Overview'],
  ] as const) {
    await page.goto(new URL(`/console/${hash}`, product.url).href);
    await seesTitle(title);
  }
});

test('shows an operator rows without a value to fill in, and leads every user to the routes of the API', async () => {
  const page = await open('#/entities/employees', ['operator', 'hr']);
  await page.getByRole('link', { name: 'Show the first rows of the table' }).click();
  await page.getByText('3 rows · 1 transaction').waitFor();
  await page.getByRole('link', { name: 'Routes to try out' }).click();
  await page.waitForURL('**/docs');
});

test('says what to do on a page that has read nothing', async () => {
  const page = await open('#/entities/employees', 'reader');
  await page.getByText('Fill in department to list rows, or choose another way to read.').waitFor();
  await page.goto(new URL('/console/#/entities/departments', product.url).href);
  await page.getByText('Fill in department to open a row.').waitFor();
  expect(await page.getByText('Show the first rows').count()).toBe(0);
});

test.each([375, 1280])(
  'shades the edges beyond which a table goes on, and keeps in view what a row is, at %d pixels',
  async (width) => {
    const page = await open('#/entities/employees/rows?key.department=Sales', 'hr');
    await page.setViewportSize({ width, height: 800 });
    const region = page.getByRole('region', { name: 'Rows of employees' });
    await region.waitFor();
    const shades = () =>
      region.evaluate((element) => {
        const { getComputedStyle } = globalThis as unknown as {
          getComputedStyle(element: unknown, pseudo: string): { readonly opacity: string };
        };
        return ['::before', '::after'].map((side) => getComputedStyle(element.parentElement, side).opacity);
      });
    const scrollTo = (left: number) =>
      region.evaluate((element, to) => {
        element.scrollLeft = to;
      }, left);
    await expect.poll(shades).toEqual(['0', '1']);
    await lookAt(page, `shade-of-${width}`);
    await page.setViewportSize({ width, height: 800 });
    // A few pixels that are hidden count, too.
    await scrollTo(5);
    await expect.poll(shades).toEqual(['1', '1']);
    await scrollTo(100_000);
    await expect.poll(shades).toEqual(['1', '0']);
    // What a row is remains visible.
    const [table, row] = [
      await region.boundingBox(),
      await page.getByRole('link', { name: 'Sales / 000101' }).boundingBox(),
    ];
    expect(row?.x).toBeGreaterThanOrEqual(table?.x ?? Number.NaN);
    await lookAt(page, `scrolled-${width}`);
    await page.setViewportSize({ width, height: 800 });
    await page.getByText('Columns').click();
    await page.getByRole('checkbox', { name: 'age' }).check();
    await page.getByRole('button', { name: 'Read' }).click();
    await expect.poll(shades).toEqual(['0', '0']);
  },
);

test('opens a row by its key, also of an entity without lists', async () => {
  expect((await product.as('hr')('POST', '/api/departments', { body: { department: 'R/D 1?' } })).status).toBe(201);
  const page = await open('#/entities/departments', 'hr');
  await page.getByRole('textbox', { name: 'department' }).fill('R/D 1?');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'R/D 1?' }).waitFor();
  await page.getByRole('button', { name: 'Edit' }).waitFor();
});

test('reads totals by group and by a range of groups', async () => {
  for (const [saleId, soldOn] of [
    ['S000001', '2026-10-01'],
    ['S000002', '2026-11-01'],
  ]) {
    const body = { branch: 'Main', saleId, soldOn, amount: 2.5 };
    expect((await product.as('hr')('POST', '/api/sales', { body })).status).toBe(201);
  }
  const page = await open('#/entities/sales/totals', 'hr');
  await page.getByRole('textbox', { name: 'branch' }).fill('Main');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.getByText('2 groups').waitFor();
  await page.getByRole('textbox', { name: 'soldOn' }).fill('2026-10');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.getByText('1 group').waitFor();
  const cells = page.getByRole('region', { name: 'Totals byMonth' }).getByRole('cell');
  expect((await cells.allTextContents()).slice(0, 4)).toEqual(['Main', '2026-10', '1', '2.5']);
  await lookAt(page, 'totals');
  const unknown = await open('#/entities/sales/totals?by=nothing&key.branch=Main&read=true', 'hr');
  await unknown.getByText('sales has no totals “nothing”, or your roles do not see them.').waitFor();
  expect(await unknown.getByText('2 groups').count()).toBe(0);
});

test('offers a form to roles that write rows without reading them', async () => {
  const page = await open('#/entities/doorevents', 'operator');
  await page.getByRole('link', { name: 'New row' }).click();
  await page.getByRole('textbox', { name: 'door' }).waitFor();
});

test('asks to sign in again when the API rejects the token', async () => {
  const page = await open('#/entities/employees', 'reader');
  const session = JSON.stringify({ token: 'e30.e30.e30', expiresAt: Date.now() + 3_600_000 });
  await page.evaluate(`sessionStorage.setItem('rowkey-session', ${JSON.stringify(session)})`);
  await page.getByRole('textbox', { name: 'department' }).fill('Sales');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.getByText('The session has ended. Sign in again.').waitFor();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
});

test('answers a rejected request with its problem', async () => {
  const page = await open('#/entities/employees/rows?key.department=Sales&where=age%20ge%20old', 'hr');
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.textContent()).toContain('Validation failed');
  await lookAt(page, 'problem');
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
  expect(await other.getByRole('columnheader').allTextContents()).toEqual(['department', 'employeeId', 'age']);
  await lookAt(other, 'unknown-column');
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

test('reads on when the user asks, after several pages without a match', async () => {
  const page = await open('', 'hr');
  let emptyPages = 0;
  // Storage returns a page without a match when it has looked through its share of a partition.
  await page.route(
    (url) => url.pathname === '/api/people/NZ',
    async (route) => {
      emptyPages += 1;
      if (emptyPages > 5)
        return route.continue({
          url: route
            .request()
            .url()
            .replace(/&continuation=[^&]*/, ''),
        });
      const link = `</api/people/NZ?continuation=page${emptyPages}>; rel="next"`;
      return route.fulfill({ json: { items: [] }, headers: { link } });
    },
  );
  await page.goto(
    new URL('/console/#/entities/people/rows?key.country=NZ&where=personId%20ge%20002490', product.url).href,
  );
  await page.getByText('0 rows so far; the last pages had no match').waitFor();
  expect(emptyPages).toBe(5);
  await lookAt(page, 'read-on');
  await page.getByRole('button', { name: 'Read on' }).click();
  await page.getByText('10 rows').waitFor();
});

test('offers to load the page again when a part of it cannot be loaded', async () => {
  const page = await open('', 'hr');
  const isPart = (url: URL) => /transfer-tab/.test(url.pathname);
  // A deployment has replaced the files of the page.
  await page.route(isPart, (route) => route.fulfill({ status: 404, body: '' }));
  await page.goto(new URL('/console/#/entities/people/transfer', product.url).href);
  const reload = page.getByRole('button', { name: 'Reload the page' });
  await reload.waitFor();
  await page.getByText('This part of the console could not be loaded.').waitFor();
  await lookAt(page, 'reload');
  await page.unroute(isPart);
  await reload.click();
  await page.getByRole('heading', { name: 'Import' }).waitFor();
});
