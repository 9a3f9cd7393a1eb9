import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { lookAt, useConsole } from '../../test/console.ts';
import { model } from './model.ts';

/** An operator blocks a user in the console, and erases what is stored of one. */

const folder = fileURLToPath(new URL('.', import.meta.url));
const { product, open } = await useConsole(import.meta.url, { app: { model, folder, packs: undefined } });

test('a user who is blocked in the console gets no response until the block ends', async () => {
  const bob = product.as('user', 'bob@contoso.com');
  expect((await bob('GET', '/api/me')).status).toBe(200);
  const page = await open('#/operators/users', 'operator');
  await page.getByText('Nobody is blocked.').waitFor();
  await page.getByRole('main').getByRole('textbox').first().fill('bob@contoso.com');
  await page.getByRole('button', { name: 'Block', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Block', exact: true }).click();
  const unblock = page.getByRole('button', { name: 'Unblock bob@contoso.com' });
  await unblock.waitFor();
  await lookAt(page, 'blocked-users');
  expect(await bob('GET', '/api/me')).toMatchObject({ status: 403, body: { detail: 'The user is blocked.' } });
  const other = await open('', 'user', 'bob@contoso.com');
  await other.getByText('The user is blocked.').waitFor();
  await unblock.click();
  await page.getByText('Nobody is blocked.').waitFor();
  expect((await bob('GET', '/api/me')).status).toBe(200);
});

test('the data of a user is counted and erased in the console', async () => {
  const dan = product.as('user', 'dan@contoso.com');
  const { groupId } = (await dan('POST', '/api/createGroup', { body: { name: 'Flat' } })).body;
  expect((await dan('POST', '/api/expenses', { body: { groupId, title: 'Rent', amount: 600 } })).status).toBe(201);
  const page = await open('#/operators/users', 'operator');
  const section = page.locator('section', { has: page.getByRole('heading', { name: 'Data of a user' }) });
  await section.getByRole('textbox').fill('dan@contoso.com');
  await section.getByRole('button', { name: 'Count rows' }).click();
  await section.getByRole('row', { name: 'expenses paidBy 1 kept without the user' }).waitFor();
  await section.getByRole('button', { name: 'Erase what is stored of dan@contoso.com' }).click();
  await lookAt(page, 'erasing-a-user');
  await page.getByRole('dialog').getByRole('button', { name: 'Erase', exact: true }).click();
  await section.getByText('1 row deleted, 1 row changed.').waitFor();
  await section.getByRole('row', { name: 'members userId 0 deleted' }).waitFor();
  await lookAt(page, 'erased-user');
  expect((await dan('GET', '/api/me/data')).body).toEqual({ items: [] });
});
