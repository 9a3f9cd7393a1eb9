import { afterAll, beforeEach, expect, test } from 'vitest';
import { launchBrowser } from '../browser.ts';
import { lookAt } from '../console.ts';
import { useStartProcess } from '../start-process.ts';

/** What a newcomer does in the first minute after `npm start`, on the app of the repository with its packs. */

const started = useStartProcess({ deployed: true });
const browser = await launchBrowser();

beforeEach(({ skip }) => {
  if (typeof browser === 'string') skip(browser);
});
afterAll(async () => {
  if (typeof browser !== 'string') await browser.close();
});

test('a newcomer signs in, finds a person by email, changes the title and sees the indexes follow', async () => {
  if (typeof browser === 'string') throw new Error(browser);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  const address = /(http\S+\/console)\b/.exec(started.process.said())?.[1] ?? '';
  await page.goto(address);
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  await lookAt(page, 'sign-in');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('checkbox', { name: 'hr', exact: true }).check();
  await page.getByRole('button', { name: 'Sign in' }).click();

  await page.getByRole('link', { name: 'employees', exact: true }).first().click();
  await page.getByLabel('Read by').selectOption({ label: 'index emailCompanyWide' });
  await page.getByRole('textbox', { name: 'email' }).fill('jonesj@contoso.com');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.getByRole('link', { name: 'Sales / 000123' }).click();

  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: 'jobTitle' }).fill('Chief of Sales');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved jobTitle').waitFor();
  // The index by email has a copy of the row, in another partition.
  await page.goBack();
  await page.getByRole('cell', { name: 'Chief of Sales' }).waitFor();
  // Without the word, the person is in the list of managers no more.
  await page.getByLabel('Read by').selectOption({ label: 'index managers' });
  await page.getByRole('textbox', { name: 'department' }).fill('Sales');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.getByText('No row matches.').waitFor();
  expect(complaints).toEqual([]);
});
