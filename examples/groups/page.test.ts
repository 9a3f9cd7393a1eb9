import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../lib/client/index.ts';
import { useProduct } from '../../test/product.ts';
import { useBrowser } from '../../test/use-browser.ts';
import { model } from './model.ts';

/** The functions and the page on the running app. In a real browser, people sign in with the provider for development. */

const folder = fileURLToPath(new URL('.', import.meta.url));
const files = new Map<string, string | Uint8Array>();
const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
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
    build: { write: false, target: 'es2024' },
  });
  if (!('output' in built)) throw new Error('Vite returned no files.');
  for (const file of built.output) files.set(file.fileName, file.type === 'chunk' ? file.code : file.source);
  const html = String(files.get('index.html'));
  files.set('index.html', html.replace('http://127.0.0.1:7071', product.url));
});
afterAll(() => {
  server.close();
});

/** Opens the page and signs in as this user. */
async function open(email: string, viewport: { width: number; height: number }, at = origin) {
  const page = await (await browser().newContext({ viewport })).newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(at);
  if (at !== origin) await page.getByText('You are invited to Flat: sign in, or create an account, to join.').waitFor();
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Your email address').fill(email);
  await page.getByRole('button', { name: 'Create an account' }).click();
  await page.waitForURL(`${origin}/`);
  return { page, complaints };
}

async function itemsOf(page: Page, list: string): Promise<string[]> {
  return (await page.locator(`#${list} li`).allTextContents()).map((text) => text.trim());
}
const isWithinWidth = (page: Page) => page.evaluate('document.documentElement.scrollWidth <= innerWidth');

test('two people share expenses, on a phone and on a desktop', async () => {
  const ann = await open('ann@contoso.com', { width: 1280, height: 900 });
  await ann.page.getByPlaceholder('Name of a group').fill('Flat');
  await ann.page.getByRole('button', { name: 'Create' }).click();
  await expect.poll(() => itemsOf(ann.page, 'balances')).toEqual(['ann@contoso.com: 0.00']);
  await ann.page.getByPlaceholder('Paid for').fill('Rent');
  await ann.page.getByPlaceholder('Amount').fill('600');
  const receipt = readFileSync(new URL('../../docs/console.png', import.meta.url));
  await ann.page.getByLabel('Receipt').setInputFiles({ name: 'r.png', mimeType: 'image/png', buffer: receipt });
  await ann.page.getByRole('button', { name: 'Add' }).click();
  await expect
    .poll(() => itemsOf(ann.page, 'expenses'))
    .toEqual(['Rent: 600.00 by ann@contoso.com, draft Open receiptFinish']);
  await ann.page.getByRole('button', { name: 'Finish' }).click();
  await expect
    .poll(() => itemsOf(ann.page, 'expenses'))
    .toEqual(['Rent: 600.00 by ann@contoso.com, final Open receipt']);
  await ann.page.getByRole('button', { name: 'Invite' }).click();
  const link = ann.page.getByLabel('Link to send');
  await expect.poll(() => link.inputValue()).toMatch(/\/\?join=[\da-f-]{36}$/);

  // Bob has no account yet, and joins on his way through the sign-up.
  const bob = await open('bob@contoso.com', { width: 390, height: 844 }, await link.inputValue());
  await expect
    .poll(() => itemsOf(bob.page, 'balances'))
    .toEqual(['ann@contoso.com: 300.00', 'bob@contoso.com: -300.00']);
  const [popup] = await Promise.all([
    bob.page.waitForEvent('popup'),
    bob.page.getByRole('button', { name: 'Open receipt' }).click(),
  ]);
  expect(popup.url()).toMatch(/^blob:/);
  expect(await bob.page.getByRole('button', { name: 'Invite' }).isVisible()).toBe(false);
  expect([await isWithinWidth(ann.page), await isWithinWidth(bob.page)]).toEqual([true, true]);
  expect([...ann.complaints, ...bob.complaints]).toEqual([]);
  if (process.env.PICTURES) {
    await ann.page.reload();
    await expect.poll(() => itemsOf(ann.page, 'balances')).toHaveLength(2);
    await ann.page.screenshot({ path: `${process.env.PICTURES}/groups-desktop.png`, fullPage: true });
    await bob.page.screenshot({ path: `${process.env.PICTURES}/groups-phone.png`, fullPage: true });
  }

  const eve = await open('eve@contoso.com', { width: 390, height: 844 });
  await eve.page.getByPlaceholder('Code of an invitation').fill(crypto.randomUUID());
  await eve.page.getByRole('button', { name: 'Join' }).click();
  await expect
    .poll(() => eve.page.getByRole('alert').innerText())
    .toBe('The invitation does not exist or has expired.');
  expect(await itemsOf(eve.page, 'balances')).toEqual([]);

  // Bob deletes what is his, and is gone from the group.
  bob.page.on('dialog', (dialog) => dialog.accept());
  await bob.page.getByRole('button', { name: 'Delete my data' }).click();
  await bob.page.getByRole('button', { name: 'Sign in' }).waitFor();
  await ann.page.reload();
  await expect.poll(() => itemsOf(ann.page, 'balances')).toEqual(['ann@contoso.com: 0.00']);
});

test('an app that runs from a clone has the console, and the settings of the host that an app gets', async () => {
  const page = await fetch(`${product.url}/console/`);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect((await fetch(`${product.url}/docs`)).status).toBe(200);
  const [own, packed] = ['host.json', '../../host.json'].map((file) =>
    readFileSync(new URL(file, import.meta.url), 'utf8'),
  );
  expect(own).toBe(packed);
});

test('the typed client lists and erases what is of its caller', async () => {
  const client = createClient<typeof model>({
    url: `${product.url}/api`,
    token: () => product.token('user', 'gil@contoso.com'),
  });
  const { groupId } = await client.operations.createGroup({ name: 'Trip' });
  const { values } = await client.expenses.create({ groupId, title: 'Food', amount: 5 });
  const userId = 'gil@contoso.com';
  expect(await client.listOwnData()).toEqual([
    { entity: 'members', field: 'userId', erasing: 'delete', values: { groupId, userId, name: userId, role: 'owner' } },
    { entity: 'expenses', field: 'paidBy', erasing: 'change', values },
  ]);
  expect(await client.groups.get({ groupId })).toMatchObject({ values: { name: 'Trip' } });
  expect(await client.eraseOwnData()).toEqual({ deleted: 1, changed: 1, failed: 0, errors: [] });
  expect(await client.listOwnData()).toEqual([]);
  expect(await client.groups.get({ groupId })).toBeUndefined();
});

test('only the payer finishes a draft', async () => {
  const [ann, dan] = ['ann@contoso.com', 'dan@contoso.com'];
  const as = (user: string) => product.as('user', user);
  const { status, body: group } = await as(ann)('POST', '/api/createGroup', { body: { name: 'Trip' } });
  expect(status).toBe(200);
  const { groupId } = group;
  const expense = { groupId, expenseId: crypto.randomUUID(), paidBy: ann, title: 'Food', amount: 5, status: 'draft' };
  const code = crypto.randomUUID();
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  for (const [entity, body] of Object.entries({
    invitations: { groupId, code, expiresAt },
    expenses: expense,
  }))
    expect((await as(ann)('POST', `/api/${entity}`, { body })).status, entity).toBe(201);
  const path = `/api/expenses/${groupId}/${expense.expenseId}`;
  const change = async (user: string, body: object) => (await as(user)('PATCH', path, { body })).status;
  const finish = (user: string) => change(user, { status: 'final' });
  expect(await finish(dan)).toBe(404);
  expect((await as(dan)('POST', '/api/join', { body: { code } })).status).toBe(200);
  expect(await finish(dan)).toBe(403);
  expect(await finish(ann)).toBe(200);
  expect(await change(ann, { amount: 6 })).toBe(403);
  expect((await as(dan)('GET', `/api/expenses/totals/balances/${groupId}/${ann}`)).body.sum).toEqual({ amount: 5 });
});
