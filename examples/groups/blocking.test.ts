import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { lookAt, useConsole } from '../../test/console.ts';
import { model } from './model.ts';

/** An operator blocks a user in the console. */

const folder = fileURLToPath(new URL('.', import.meta.url));
const { product, open } = await useConsole(import.meta.url, { app: { model, folder, packs: undefined } });

test('a user who is blocked in the console gets no response until the block ends', async () => {
  const bob = product.as('user', 'bob@contoso.com');
  expect((await bob('GET', '/api/me')).status).toBe(200);
  const page = await open('#/operators/users', 'operator');
  await page.getByText('Nobody is blocked.').waitFor();
  await page.getByRole('main').getByRole('textbox').fill('bob@contoso.com');
  await page.getByRole('button', { name: 'Block', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Block', exact: true }).click();
  const unblock = page.getByRole('button', { name: 'Unblock bob@contoso.com' });
  await unblock.waitFor();
  await lookAt(page, 'blocked-users');
  expect(await bob('GET', '/api/me')).toMatchObject({ status: 403, body: { detail: 'The user is blocked.' } });
  await unblock.click();
  await page.getByText('Nobody is blocked.').waitFor();
  expect((await bob('GET', '/api/me')).status).toBe(200);
});
