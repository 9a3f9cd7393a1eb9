import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useProduct } from '../product.ts';
import { useBrowser } from '../use-browser.ts';

/** A person signs in to the served console with the identity provider for development, in a browser. */

const product = useProduct(import.meta.url);
const browser = await useBrowser();

async function open(): Promise<{ page: Page; complaints: string[] }> {
  const page = await (await browser().newContext()).newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(product.url);
  return { page, complaints };
}

test('a person chooses a role and an address by keyboard, and the console shows what the role may read', {
  tags: ['slow'],
}, async () => {
  const { page, complaints } = await open();
  await page.waitForURL(`${product.url}/console`);
  await page.getByRole('button', { name: 'Sign in' }).press('Enter');
  await page.getByRole('heading', { name: 'Sign in for development' }).waitFor();
  await page.getByRole('checkbox', { name: 'hr', exact: true }).press('Space');
  await page.getByRole('textbox', { name: /^Email/ }).fill('ann@contoso.com');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Entities', level: 1 }).waitFor();
  expect(page.url()).toMatch(new RegExp(`^${product.url}/console/(#.*)?$`));
  await page.getByText('ann@contoso.com').waitFor();
  expect(complaints).toEqual([]);

  // The next sign-in in this browser shows the same person, and takes one key.
  const again = await page.context().newPage();
  await again.goto(product.url);
  await again.getByRole('button', { name: 'Sign in' }).click();
  await again.getByRole('heading', { name: 'Sign in for development' }).waitFor();
  const checked = await again
    .getByRole('checkbox', { checked: true })
    .evaluateAll((boxes) => boxes.map((box) => (box as unknown as { value: string }).value));
  expect(checked).toEqual(['hr']);
  await again.getByRole('button', { name: 'Sign in' }).press('Enter');
  await again.getByText('ann@contoso.com').waitFor();

  // The page that is open shows next what another person sees.
  await again.goto(`${product.url}/console/#/entities/employees/access`);
  await again.getByRole('button', { name: 'Try as another user' }).click();
  await again.getByRole('checkbox', { name: 'hr', exact: true }).uncheck();
  await again.getByRole('checkbox', { name: 'reader', exact: true }).check();
  await again.getByLabel(/^Claims/).fill('departments=Sales');
  await again.getByRole('button', { name: 'Sign in' }).click();
  await again.getByRole('banner').getByText('reader', { exact: true }).waitFor();
  await again.getByRole('heading', { level: 1, name: 'employees' }).waitFor();
});

test('the console under the other name of this machine signs in, too', { tags: ['slow'] }, async () => {
  const { page, complaints } = await open();
  await page.goto(product.url.replace('127.0.0.1', 'localhost'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('checkbox', { name: 'hr', exact: true }).check();
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Entities', level: 1 }).waitFor();
  expect(new URL(page.url()).hostname).toBe('localhost');
  expect(complaints).toEqual([]);
});
