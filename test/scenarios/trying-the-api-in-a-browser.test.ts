import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { lookAt } from '../console.ts';
import { useProduct } from '../product.ts';
import { useBrowser } from '../use-browser.ts';

/** The page /docs renders the OpenAPI description, and sends requests with the token of the session. */

/** Rules that the renderer breaks by its structure and its missing labels. */
const BY_RENDERER = [
  ...['heading-order', 'label', 'label-title-only', 'landmark-unique', 'nested-interactive', 'region'],
  ...['scrollable-region-focusable', 'select-name'],
];

const product = useProduct(import.meta.url);
const browser = await useBrowser();

async function open(token?: string): Promise<{ page: Page; complaints: string[]; requested: string[] }> {
  const page = await (await browser().newContext()).newPage();
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => requested.push(request.url()));
  if (token)
    await page.addInitScript((text) => sessionStorage.setItem('rowkey-session', text), JSON.stringify({ token }));
  await page.goto(`${product.url}/docs`);
  return { page, complaints, requested };
}

test('tries a route with the token of the session, and loads nothing from another site', async () => {
  const { page, complaints, requested } = await open(await product.token('operator'));
  await page.locator('#operations-tag-operations, .opblock-tag-section').first().waitFor();
  const route = page.locator('.opblock', { hasText: '/api/operations/model' }).first();
  if (!(await route.isVisible())) await page.locator('.opblock-tag', { hasText: 'operations' }).first().click();
  await route.locator('.opblock-summary').click();
  await route.getByRole('button', { name: 'Execute' }).click();
  const responded = route.locator('.live-responses-table .response-col_status');
  await responded.filter({ hasText: '200' }).waitFor();
  await page.locator('.opblock-tag', { hasText: 'employees' }).first().click();
  await page.locator('.opblock-patch .opblock-summary-control[aria-expanded=false]').first().click();
  await page.locator('.opblock-patch textarea').waitFor();
  await page.evaluate('scrollTo(0, 0)');
  await lookAt(page, 'docs', { except: BY_RENDERER });
  // The whole placeholder is visible on a phone.
  await page.setViewportSize({ width: 375, height: 800 });
  expect((await page.getByPlaceholder('Filter by tag or path').boundingBox())?.width).toBeGreaterThan(300);
  expect(complaints).toEqual([]);
  expect(requested.filter((url) => !url.startsWith(product.url) && !url.startsWith('data:'))).toEqual([]);
});

test('is dark on a dark device, unless the console is set to light', async () => {
  const { page } = await open();
  const colors = () =>
    page.evaluate<readonly string[]>(
      "[getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.querySelector('.info .title')).color]",
    );
  const title = page.locator('.info .title');
  await title.waitFor();
  const light = await colors();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('html.dark-mode').waitFor();
  const [background, text] = await colors();
  expect([background, text]).toEqual(['rgb(28, 32, 34)', expect.not.stringContaining(light[1] ?? '')]);
  await page.evaluate("localStorage.setItem('rowkey-theme', 'light')");
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.reload();
  await title.waitFor();
  expect(await colors()).toEqual(light);
});

test('shows the routes of one entity', async () => {
  const { page, complaints } = await open();
  await page.goto(`${product.url}/docs?tag=employees`);
  await page.locator('.opblock-tag', { hasText: 'employees' }).waitFor();
  expect(await page.locator('.opblock-tag').count()).toBe(1);
  await page.locator('.opblock', { hasText: '/api/employees' }).first().waitFor();
  await lookAt(page, 'docs-of-one-entity', { except: BY_RENDERER });
  expect(complaints).toEqual([]);
  await page.goto(`${product.url}/docs?tag=nothing`);
  await page.getByText('Only the routes of “nothing” are shown.').waitFor();
  await page.getByRole('link', { name: 'Show all routes' }).click();
  await page.locator('.opblock-tag', { hasText: 'employees' }).first().waitFor();
});

test('says where to sign in without a session', async () => {
  const { page } = await open();
  const link = page.getByRole('status').getByRole('link', { name: 'the console' });
  expect(await link.getAttribute('href')).toBe('/console');
});

test('has no inline script, and is off with the console', async () => {
  const { headers } = await fetch(`${product.url}/docs`);
  const policy = headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toMatch(/script-src|unsafe-eval/);
  expect((await fetch(`${product.url}/docs/none.js`)).status).toBe(404);
});

test('sends filters of a list, repeated and with an operator', async () => {
  const { page } = await open(await product.token('hr'));
  await page.goto(`${product.url}/docs?tag=employees`);
  const route = page.locator('.opblock', { hasText: 'List employees of one department' });
  await route.locator('.opblock-summary-control').click();
  const parameter = (name: string) => route.locator(`tr[data-param-name="${name}"]`);
  await parameter('department').locator('input').first().fill('Sales');
  // A value or a comparison, both of which are texts.
  for (const name of ['lastName', 'age'])
    await parameter(name).getByRole('button', { name: 'Add string item', exact: true }).waitFor();
  for (const [name, values] of Object.entries({ age: ['ge:30', '31'], lastName: ['in:Lee,Cy'] }))
    for (const [position, value] of values.entries()) {
      await parameter(name).getByRole('button', { name: /^Add / }).click();
      await parameter(name).locator('input, textarea').nth(position).fill(value);
    }
  const sent = page.waitForRequest((request) => request.url().includes('/api/employees/Sales'));
  await route.getByRole('button', { name: 'Execute' }).click();
  const { searchParams } = new URL((await sent).url());
  await route.scrollIntoViewIfNeeded();
  await lookAt(page, 'docs-filters', { except: BY_RENDERER });
  expect([searchParams.getAll('age'), searchParams.getAll('lastName')]).toEqual([['ge:30', '31'], ['in:Lee,Cy']]);
});
