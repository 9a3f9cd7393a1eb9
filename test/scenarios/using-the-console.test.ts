import type { Page } from 'playwright-core';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { launchBrowser } from '../browser.ts';
import { serveConsole } from '../console.ts';
import { useProduct } from '../product.ts';

let url = '';
const served = await serveConsole(() => url);
const product = useProduct(import.meta.url, { cors: [served.origin] });
const browser = await launchBrowser();
const complaints: string[] = [];

beforeEach(({ skip }) => {
  if (typeof browser === 'string') skip(browser);
  url = new URL('/api', product.url).href;
});
afterAll(async () => {
  if (typeof browser !== 'string') await browser.close();
  served.stop();
});

async function open(hash: string, role: string | readonly string[]): Promise<Page> {
  if (typeof browser === 'string') throw new Error(browser);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  const session = { token: await product.token(role), expiresAt: Date.now() + 3_600_000 };
  await page.addInitScript((text) => sessionStorage.setItem('rowkey-session', text), JSON.stringify(session));
  await page.goto(`${served.origin}/console/${hash}`);
  return page;
}

test('shows the entities that the roles of the user may read', async () => {
  const page = await open('', 'hr');
  await page.getByRole('heading', { name: 'Entities', level: 1 }).waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'employees', exact: true }).waitFor();
  expect(complaints).toEqual([]);
});
