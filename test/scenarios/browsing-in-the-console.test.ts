import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { lookAt, openPart, useConsole } from '../console.ts';
import { testBrowsing } from '../console-flows/browsing.ts';
import { testTotals } from '../console-flows/totals.ts';

const harness = await useConsole(import.meta.url);
const { product, open } = harness;

/** The address of each call of the API but those for the model. */
function recordCalls(page: Page): readonly string[] {
  const calls: string[] = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (/^\/api\/(?!model)/.test(pathname)) calls.push(pathname + search);
  });
  return calls;
}

const go = (page: Page, entity: string) => page.goto(new URL(`/console/#/entities/${entity}`, product.url).href);

testBrowsing(harness);
testTotals(harness, {
  entity: 'sales',
  totals: 'byMonth',
  rows: ['2026-10-01', '2026-11-01'].map((soldOn, n) => [
    'sales',
    { branch: 'Main', saleId: `S00000${n}`, soldOn, amount: 2.5 },
  ]),
  group: { branch: 'Main', soldOn: '2026-10' },
});

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

test('opens the menu of a phone in view, also on a page that is scrolled', async () => {
  const page = await open('', ['hr', 'operator']);
  await page.setViewportSize({ width: 390, height: 700 });
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
  const scrolled = () => page.evaluate('scrollY');
  await expect.poll(scrolled).toBeGreaterThan(300);
  await page.getByRole('button', { name: 'Menu' }).click();
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  const links = navigation.getByRole('link');
  const [header, first] = await Promise.all(
    [page.getByRole('banner'), links.first()].map((part) => part.boundingBox()),
  );
  expect(first?.y).toBeGreaterThanOrEqual((header?.y ?? 0) + (header?.height ?? 0));
  await links.last().scrollIntoViewIfNeeded();
  const last = await links.last().boundingBox();
  expect((last?.y ?? 0) + (last?.height ?? 0)).toBeLessThanOrEqual(700);
  // The costs of the page would cover a part of a small screen.
  expect(await page.getByText('This page:').isVisible()).toBe(false);
  await lookAt(page, 'menu');
  await page.setViewportSize({ width: 390, height: 700 });
  // The link of the page that is open closes the menu, too.
  await navigation.getByRole('link', { name: 'Period tables' }).click();
  await page.getByRole('heading', { name: 'Period tables' }).waitFor();
  await expect.poll(() => navigation.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Menu' }).click();
  await navigation.getByRole('link', { name: 'Period tables' }).click();
  await expect.poll(() => navigation.isVisible()).toBe(false);
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

test('leads every user to the routes of the API', async () => {
  const page = await open('#/entities/employees', 'reader');
  await page.getByRole('link', { name: 'Routes to try out' }).click();
  await page.waitForURL('**/docs');
});

test('opens an entity for an operator with the first rows of its table, below the form of the partition', async () => {
  // The first page with a link creates or reads the signing secret, once per process.
  await product.as(['operator', 'reader'])('GET', '/api/operations/scan/people?top=1');
  const page = await open('', ['operator', 'reader']);
  const paths = recordCalls(page);
  await go(page, 'people');
  await page.getByText(/^First 20 rows of the table · 1 transaction, .* country NZ in each row/).waitFor();
  expect(paths).toEqual(['/api/operations/scan/people?top=20']);
  expect(await page.getByLabel('Read by').inputValue()).toBe('');
  await page.getByText('Fill in country to list rows, or choose another way to read.').waitFor();
  expect(await page.getByText('No rows are shown').count()).toBe(0);
  const region = page.getByRole('region', { name: 'Rows of people' });
  expect(await region.getByRole('row').count()).toBe(21);
  const [form, rows] = [await page.getByRole('textbox', { name: 'country' }).boundingBox(), await region.boundingBox()];
  expect(form?.y).toBeLessThan(rows?.y ?? 0);
  await lookAt(page, 'first-rows');
  await page.getByRole('link', { name: 'Read the whole table' }).click();
  await page.getByText('100 rows so far').waitFor();
  await go(page, 'employees');
  await page.getByText('3 rows in the table · 1 transaction').waitFor();
  await page.getByRole('link', { name: 'Sales / 000101' }).click();
  await page.getByRole('heading', { name: 'Sales / 000101' }).waitFor();
});

test('says that the start of a table has no row, and what failed', async () => {
  const page = await open('', ['operator', 'reader']);
  const isScan = (url: URL) => url.pathname === '/api/operations/scan/people';
  const link = '</api/operations/scan/people?top=20&continuation=next>; rel="next"';
  await page.route(isScan, (route) => route.fulfill({ json: { items: [] }, headers: { link } }));
  await go(page, 'people');
  await page.getByText('No row at the start of the table').waitFor();
  await page.getByRole('link', { name: 'Read the whole table' }).waitFor();
  await page.unroute(isScan);
  await page.route(isScan, (route) =>
    route.fulfill({ status: 403, json: { code: 'forbidden', title: 'Forbidden', detail: 'Not yours.' } }),
  );
  await page.reload();
  await page.getByRole('alert').getByText('Not yours.').waitFor();
  await page.getByRole('textbox', { name: 'country' }).waitFor();
});

test('offers the whole table of entities, also of periods and of archives, and reads it', async () => {
  const page = await open('', ['operator', 'reader', 'hr']);
  const paths: string[] = Object.keys((await product.as('operator')('GET', '/api/openapi.json')).body.paths);
  const login = { employeeId: '000777', at: new Date().toISOString(), succeeded: true };
  expect((await product.as('hr')('POST', '/api/logins', { body: login })).status).toBe(201);
  for (const name of ['employees', 'logins', 'formeremployees']) {
    expect(paths.filter((path) => path.endsWith(`/operations/scan/${name}`))).toHaveLength(1);
    await page.goto(new URL(`/console/#/entities/${name}`, product.url).href);
    await page.getByRole('heading', { name, exact: true }).waitFor();
    const readBy = page.getByLabel('Read by');
    await readBy.waitFor();
    await readBy.selectOption({ label: 'whole table' });
    if (name === 'logins') await page.getByRole('link', { name: '000777' }).first().waitFor();
  }
});

test('says why a page has read nothing, and what to do', async () => {
  const page = await open('', 'reader');
  const paths = recordCalls(page);
  const why = (entity: string) => `No rows are shown, because no index lists all rows of ${entity} in one query.`;
  await go(page, 'employees');
  const fillIn = 'Fill in department to list rows, or choose another way to read.';
  await page.getByText(`${why('employees')} ${fillIn}`).waitFor();
  await lookAt(page, 'no-rows');
  await go(page, 'departments');
  await page.getByText(`${why('departments')} Fill in department to open a row.`).waitFor();
  expect(paths).toEqual([]);
});

test('opens an entity with its first rows if a list takes one query and no value', async () => {
  const currencies = ['EUR', 'USD'].map((currency) => ({ currency, title: `Money of ${currency}` }));
  for (const body of currencies) expect((await product.as('hr')('POST', '/api/currencies', { body })).status).toBe(201);
  const page = await open('#/entities/currencies', 'reader');
  await page.getByText('2 rows · 1 transaction').waitFor();
  expect(await page.getByLabel('Read by').inputValue()).toBe('inOrder');
  await page.getByRole('link', { name: 'EUR · Money of EUR' }).waitFor();
  await lookAt(page, 'opened');
});

test('opens an entity with the first rows of an index of several queries if no list takes one, and reads on when asked', async () => {
  const page = await open('', 'reader');
  const paths = recordCalls(page);
  await go(page, 'customers');
  await page.getByText('Fill in city to list rows').waitFor();
  await page
    .getByText(/ the index lastNameCompanyWide · \d+ transactions?, .* Rows without lastName are not in it\./)
    .waitFor();
  expect(paths).toEqual(['/api/customers/by/lastNameCompanyWide?top=20']);
  await go(page, 'customers/rows?by=lastNameCompanyWide');
  await page.getByText(/^\d+ rows? · \d+ transactions?/).waitFor();
  expect(paths.at(-1)).toBe('/api/customers/by/lastNameCompanyWide?top=100');
});

test('scans no table for an address that names an index, but offers to', async () => {
  const page = await open('', ['reader', 'operator']);
  const paths = recordCalls(page);
  await go(page, 'employees/rows?by=emailCompanyWide');
  const table = page.getByRole('link', { name: 'Show the first rows of the table' });
  await table.waitFor();
  expect(paths).toEqual([]);
  await table.click();
  await page.getByText('3 rows · 1 transaction').waitFor();
});

test('offers the rows of a lookup table as values of a partition key that refers to it', async () => {
  const hr = product.as('hr');
  expect(
    (await hr('POST', '/api/customers', { body: { city: 'Bern', customerId: 'NOK', companyName: 'Oslo' } })).status,
  ).toBe(201);
  expect((await hr('POST', '/api/currencies', { body: { currency: 'NOK', title: 'Krone' } })).status).toBe(201);
  const order = { customerId: 'NOK', orderId: 7, orderDate: '2026-10-01', shipCity: 'Oslo' };
  expect((await hr('POST', '/api/orders', { body: order })).status).toBe(201);
  const page = await open('', 'reader');
  // The console as it is for a model whose orders refer to the lookup table of currencies.
  await page.route('**/api/model', async (route) => {
    const model = await (await route.fetch()).json();
    model.entities.orders.references = { customerId: { to: 'currencies', by: 'currency' } };
    await route.fulfill({ json: model });
  });
  await page.goto(new URL('/console/#/entities/orders', product.url).href);
  await page.reload();
  const choices = page.getByRole('region', { name: 'Choose customerId' });
  await choices.getByText(/\d+ transactions?/).waitFor();
  await lookAt(page, 'choices');
  await choices.getByRole('link', { name: 'Krone' }).click();
  await page.getByText('1 row · 1 transaction').waitFor();
  await page.getByRole('link', { name: 'NOK / 7 · Oslo' }).waitFor();
});

test('shows each row as a card on a phone, which scrolls down only', async () => {
  const page = await open('#/entities/employees/rows?key.department=Sales', 'hr');
  await page.setViewportSize({ width: 390, height: 800 });
  const region = page.getByRole('region', { name: 'Rows of employees' });
  const [title, age] = ['jobTitle', 'age'].map((label) => region.locator(`[data-label=${label}]`).first());
  await expect.poll(async () => (await age?.boundingBox())?.x === (await title?.boundingBox())?.x).toBe(true);
  expect(await region.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
  // The heads sort the cards.
  await page.getByRole('button', { name: 'jobTitle', exact: true }).click();
  await page.getByText('Sorted by jobTitle.').waitFor();
  expect(await region.getByRole('cell', { name: 'Buyer' }).count()).toBe(1);
  const boxes = await region.getByRole('row').evaluateAll((rows) => rows.slice(1).map((row) => row.clientHeight));
  expect(new Set(boxes).size).toBe(1);
  await lookAt(page, 'cards');
});

test('offers the rows of a referred entity by their labels as one types', async () => {
  const body = { city: 'Bern', customerId: 'SMITH1', companyName: 'Smith Ltd', contactName: 'Ann Smithson' };
  expect((await product.as('hr')('POST', '/api/customers', { body })).status).toBe(201);
  const page = await open('', 'hr');
  // The console as it is for a model that names customers by the last name, of which an index has the order.
  await page.route('**/api/model', async (route) => {
    const model = await (await route.fetch()).json();
    model.entities.customers.label = 'lastName';
    await route.fulfill({ json: model });
  });
  await page.goto(new URL('/console/#/entities/orders/new', product.url).href);
  await page.reload();
  const paths = recordCalls(page);
  const field = page.getByRole('combobox', { name: /^customerId/ });
  await field.fill('Smiths');
  const options = () =>
    field.evaluate((input) => [...Object(input).list.options].map(({ value, label }) => `${value} ${label}`));
  await expect.poll(() => paths.at(-1)).toMatch(/^\/api\/customers\/by\/lastNameCompanyWide\?.*from=Smiths/);
  await expect.poll(options).toEqual(['SMITH1 Smithson']);
});

test('leads a value to the indexes that answer it', async () => {
  const page = await open('#/entities/employees', 'hr');
  await page.getByLabel('Find rows with').fill('p1@contoso.com');
  const links = page.getByRole('search').getByRole('link');
  await links.first().waitFor();
  // A department may have any name. An index within the partition needs the department, too.
  expect(await links.allTextContents()).toEqual([
    'partition: department is p1@contoso.com',
    'index emailCompanyWide: email is p1@contoso.com',
    'index lastNameCompanyWide: lastName is p1@contoso.com',
  ]);
  await page.getByLabel('Find rows with').fill('Ann');
  await expect.poll(() => links.count()).toBe(2);
  await page.getByLabel('Find rows with').fill('p1@contoso.com');
  await lookAt(page, 'find-a-value');
  await page.getByRole('link', { name: 'index emailCompanyWide: email is p1@contoso.com' }).click();
  await page.getByText('1 row · 1 transaction').waitFor();
});

test.each([1280])(
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
    await openPart(page, 'Columns');
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

test('says which rows an index or totals leave out', async () => {
  const page = await open('#/entities/customers/rows?by=cityAndLastName', 'hr');
  await page.getByText('Rows without lastName are not in it.').waitFor();
  await page.getByLabel('Read by').selectOption({ label: 'index id' });
  await page.getByText('index id: unique').waitFor();
  expect(await page.getByText('are not in it').count()).toBe(0);
  await lookAt(page, 'index-of-all-rows');
  // A field of its key is optional in the schema, because it is derived.
  const films = await open('#/entities/movies/rows?by=actor', 'hr');
  await films.getByText('index actor: ').waitFor();
  expect(await films.getByText('are not in it').count()).toBe(0);
  const totals = await open('#/entities/sales/totals?by=byClerk', 'hr');
  await totals.getByText('Rows without clerk do not count.').waitFor();
  await lookAt(totals, 'totals-of-some-rows');
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
