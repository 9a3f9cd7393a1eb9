import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useProduct } from '../../test/product.ts';
import { useBrowser } from '../../test/use-browser.ts';
import { model } from './model.ts';

/** The tutorial: two people with phones, on the running app. */

const folder = fileURLToPath(new URL('.', import.meta.url));
const PHONE = { width: 390, height: 844 };
const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript' };
const files = new Map<string, string | Uint8Array>();
const server = createServer((request, response) => {
  const name = new URL(request.url ?? '', 'http://page').pathname.slice(1) || 'index.html';
  const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain';
  response.writeHead(files.has(name) ? 200 : 404, { 'content-type': `${type}; charset=utf-8` }).end(files.get(name));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const product = useProduct(import.meta.url, { app: { model, folder, packs: undefined }, cors: [origin] });
const browser = await useBrowser();

beforeAll(async () => {
  const built = await build({
    root: `${folder}page`,
    configFile: false,
    logLevel: 'warn',
    define: { 'import.meta.env.VITE_API': JSON.stringify(`${product.url}/api`) },
    build: { write: false, target: 'es2024' },
  });
  if (!('output' in built)) throw new Error('Vite returned no files.');
  for (const file of built.output) files.set(file.fileName, file.type === 'chunk' ? file.code : file.source);
});
afterAll(() => {
  server.close();
});

/** Opens the page on a phone of its own, and creates an account. */
async function signUp(email: string, at = origin): Promise<Page> {
  const page = await (await browser().newContext({ viewport: PHONE })).newPage();
  await page.goto(at);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Your email address').fill(email);
  await page.getByRole('button', { name: 'Create an account' }).click();
  await page.waitForURL(`${origin}/`);
  return page;
}

const toolsOf = (page: Page) => page.locator('li span').allTextContents();
const takePicture = async (page: Page, name: string) => {
  if (!process.env.PICTURES) return;
  const clip = { x: 0, y: 0, width: PHONE.width, height: 460 };
  await page.screenshot({ path: `${process.env.PICTURES}/${name}.png`, clip });
};

test('a neighbour joins by a link and borrows a tool, and the owner sees it', async () => {
  const ann = await signUp('ann@contoso.com');
  await ann.getByPlaceholder('Name of a library').fill('Our street');
  await ann.getByRole('button', { name: 'Create' }).click();
  await ann.getByPlaceholder('Tool').fill('Drill');
  const photo = readFileSync(new URL('../../docs/console.png', import.meta.url));
  await ann.getByLabel('Photo').setInputFiles({ name: 'drill.png', mimeType: 'image/png', buffer: photo });
  await ann.getByRole('button', { name: 'Add' }).click();
  await expect.poll(() => toolsOf(ann)).toEqual(['Drill']);
  await ann.getByAltText('Drill').waitFor();
  const link = await ann.getByLabel('Link for a neighbour').inputValue();
  expect(link).toMatch(/\/\?join=[\da-f-]{36}$/);
  await takePicture(ann, 'owner');

  const bob = await signUp('bob@contoso.com', link);
  await expect.poll(() => toolsOf(bob)).toEqual(['Drill']);
  await bob.getByRole('button', { name: 'Borrow' }).click();
  await expect.poll(() => toolsOf(bob)).toEqual(['Drill, lent to bob@contoso.com']);
  await bob.getByRole('button', { name: 'Return' }).waitFor();
  await takePicture(bob, 'borrower');

  // Without a reload: the page reads again.
  await expect.poll(() => toolsOf(ann)).toEqual(['Drill, lent to bob@contoso.com']);
  expect(await ann.getByRole('button', { name: 'Borrow' }).count()).toBe(0);
  for (const page of [ann, bob])
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);

  const eve = await signUp('eve@contoso.com', `${origin}/?join=${crypto.randomUUID()}`);
  await expect.poll(() => eve.getByRole('alert').innerText()).toBe('No library has this code.');
  expect(await toolsOf(eve)).toEqual([]);
});

test.each(['model.ts', 'operations.ts', 'model.test.ts', 'page/index.html', 'page/page.ts'])(
  'docs/tutorial.md shows the file that the tests run: %s',
  (file) => {
    const code = readFileSync(`${folder}${file}`, 'utf8')
      .replaceAll('../../../lib/client/index.ts', 'rowkey/client')
      .replaceAll('../../../lib/client/sign-in.ts', 'rowkey/sign-in')
      .replaceAll('../../lib/testing/index.ts', 'rowkey/testing')
      .replaceAll(/\.\.\/\.\.\/lib\/(?:define|index)\.ts/g, 'rowkey');
    expect(readFileSync('docs/tutorial.md', 'utf8')).toContain(`\n${code}\`\`\`\n`);
  },
);
