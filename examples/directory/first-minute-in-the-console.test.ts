import { expect, test } from 'vitest';
import { lookAt } from '../../test/console.ts';
import { useStartProcess } from '../../test/start-process.ts';
import { useBrowser } from '../../test/use-browser.ts';

/** What a newcomer does in the first minute after `npm start`, on the app of the repository. */

const started = useStartProcess({ deployed: true });
const browser = await useBrowser();

test('a newcomer signs in, finds a person by email, changes the title and sees the indexes follow', async () => {
  const page = await browser().newPage({ viewport: { width: 1280, height: 800 } });
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

  // The overview leads to the field, which has the focus.
  await page.getByRole('link', { name: 'emailCompanyWide', exact: true }).click();
  const email = page.getByRole('textbox', { name: 'email' });
  await expect.poll(() => email.evaluate((input) => input === input.ownerDocument.activeElement)).toBe(true);
  await page.keyboard.type('jonesj@contoso.com');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Sales / 000123' }).click();

  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByRole('textbox', { name: 'jobTitle' }).fill('Chief of Sales');
  await page.keyboard.press('Enter');
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

test('signs in, finds a person by email, changes the title and undoes it, by keyboard alone', async () => {
  const context = await browser().newContext({ locale: 'en-US', viewport: { width: 375, height: 700 } });
  const page = await context.newPage();
  const address = /(http\S+\/console)\b/.exec(started.process.said())?.[1] ?? '';
  /** Moves the focus as a user does who does not know the page, and shows that it can be seen. */
  const tabTo = async (role: 'link' | 'button' | 'textbox' | 'checkbox', name: string) => {
    const target = page.getByRole(role, { name, exact: true }).first();
    await target.waitFor();
    const hasFocus = () => target.evaluate((element) => element === element.ownerDocument.activeElement);
    for (let presses = 0; !(await hasFocus()); presses += 1) {
      expect(presses, `${role} ${name}`).toBeLessThan(100);
      await page.keyboard.press('Tab');
    }
    const ring = await target.evaluate((element) => {
      const { getComputedStyle } = globalThis as unknown as {
        getComputedStyle(element: unknown): { readonly outlineStyle: string; readonly boxShadow: string };
      };
      const { outlineStyle, boxShadow } = getComputedStyle(element);
      return [outlineStyle, boxShadow];
    });
    expect(ring, `the ring of ${role} ${name}`).not.toEqual(['none', 'none']);
  };
  await page.goto(address);
  await tabTo('button', 'Sign in');
  await page.keyboard.press('Enter');
  await tabTo('checkbox', 'hr');
  await page.keyboard.press('Space');
  await tabTo('button', 'Sign in');
  await page.keyboard.press('Enter');
  await tabTo('link', 'emailCompanyWide');
  await page.keyboard.press('Enter');
  await tabTo('textbox', 'email');
  await page.keyboard.type('jonesj@contoso.com');
  await page.keyboard.press('Enter');
  await tabTo('link', 'Sales / 000123 · jonesj@contoso.com');
  await page.keyboard.press('Enter');
  await tabTo('button', 'Edit');
  const before = await page.getByRole('definition').allTextContents();
  await page.keyboard.press('Enter');
  await tabTo('textbox', 'jobTitle');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('Head of everything');
  await page.keyboard.press('Enter');
  await page.getByText('Saved jobTitle').waitFor();
  await tabTo('button', 'Undo');
  await page.keyboard.press('Enter');
  await page.getByText('Saved jobTitle').waitFor({ state: 'detached' });
  await expect.poll(() => page.getByRole('definition').allTextContents()).toEqual(before);
});
