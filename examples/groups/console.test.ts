import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { lookAt, openPart, useConsole } from '../../test/console.ts';
import { model } from './model.ts';

/** The console of an app whose users reach some rows only, by rules. */

const folder = fileURLToPath(new URL('.', import.meta.url));
const { product, open } = await useConsole(import.meta.url, { app: { model, folder, packs: undefined } });
const [ann, bob] = ['ann@contoso.com', 'bob@contoso.com'];
const group = { id: '' };

beforeAll(async () => {
  const as = product.as('user', ann);
  const created = await as('POST', '/api/createGroup', { body: { name: 'Trip' } });
  expect(created.status).toBe(200);
  group.id = created.body.groupId;
  for (const [n, title] of ['Train', 'Hotel', 'Pizza'].entries()) {
    const body = { groupId: group.id, title, amount: 12.5 - n };
    expect((await as('POST', '/api/expenses', { body })).status).toBe(201);
  }
});

test('opens each entity with the rows that the rules let the caller read, and never with an error', async () => {
  const page = await open('#/entities/expenses', 'user', ann);
  await page.getByText(/^3 rows · \d transactions?,/).waitFor();
  await page.getByRole('cell', { name: 'Hotel' }).waitFor();
  await lookAt(page, 'rows-by-rules');
  for (const entity of ['groups', 'members']) {
    await page.goto(new URL(`/console/#/entities/${entity}`, product.url).href);
    await page.getByText(/^1 row · /).waitFor();
  }
  await page.goto(new URL('/console/#/entities/invitations', product.url).href);
  await page.getByText('No row matches.').waitFor();
  // An operator who reads some rows only may not scan the table.
  const operator = await open('#/entities/expenses', ['user', 'operator'], ann);
  await operator.getByText(/^3 rows · /).waitFor();
  expect(await operator.getByRole('alert').count()).toBe(0);
});

test('opens an entity by the index of the caller, if the rules name the caller and no list of all rows', async () => {
  const page = await open('#/entities/expenses', 'user', ann);
  await page.route('**/api/model', async (route) => {
    const { entities, ...rest } = await (await route.fetch()).json();
    const { access } = entities.expenses;
    const [rule] = access.rules.read;
    access.mine = undefined;
    access.rules.read = [{ ...rule, terms: ['paidBy is the caller'] }];
    await route.fulfill({ json: { ...rest, entities } });
  });
  await page.reload();
  await page.getByText(/^3 rows · /).waitFor();
  expect(await page.getByRole('textbox', { name: 'paidBy', exact: true }).inputValue()).toBe(ann);
});

test('says calmly that the rules do not open a list', async () => {
  const page = await open('#/entities/expenses', 'user', ann);
  // As the API responds if the memberships of a caller are too many.
  await page.route('**/api/expenses?*', (route) =>
    route.fulfill({ status: 403, json: { title: 'Forbidden', code: 'forbidden', detail: 'Too many memberships.' } }),
  );
  await page.reload();
  await page.getByText('Your roles do not read expenses this way. Too many memberships.').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  await lookAt(page, 'rows-that-no-rule-opens');
});

test('shows where a row is stored to a caller who reads some rows only, and offers no write that the rules forbid', async () => {
  const invitation = await product.as('user', ann)('POST', '/api/invitations', { body: { groupId: group.id } });
  const { code } = invitation.body;
  expect((await product.as('user', bob)('POST', '/api/join', { body: { code } })).status).toBe(200);
  const page = await open(`#/entities/members/rows/${group.id}/${ann}`, 'user', bob);
  await openPart(page, 'Where it is stored');
  const places = page.getByRole('region', { name: 'Rows and index entries' });
  await places.waitFor();
  const texts = (await places.getByRole('row').allTextContents()).slice(1);
  expect(texts.map((text) => text.replaceAll(group.id, 'ID'))).toEqual([
    `the rowgroupsIDmember_${ann}`,
    `index entry: userIdgroupsbymember${ann}ID`,
  ]);
  await page.getByText('shown to roles that may delete the row and read every row of its table').waitFor();
  // No rule lets a user change a membership.
  expect(await page.getByRole('button', { name: /Edit/ }).count()).toBe(0);
  await lookAt(page, 'places-by-rules');
});

test('titles a row by its label, names the group of the row, and offers the groups where a form asks for their id', async () => {
  const { items } = (await product.as('user', ann)('GET', `/api/expenses/${group.id}`)).body;
  const { expenseId, title } = items[0];
  const page = await open(`#/entities/expenses/rows/${group.id}/${expenseId}`, 'user', ann);
  await page.getByRole('heading', { level: 1, name: `${title} ${group.id} / ${expenseId}` }).waitFor();
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Trip' }).waitFor();
  await lookAt(page, 'row-with-a-label');
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Trip' }).click();
  await page.getByText(/^3 rows · /).waitFor();
  await page.goto(new URL('/console/#/entities/expenses/rows?by=', product.url).href);
  await page.getByRole('region', { name: 'Choose groupId' }).getByRole('link', { name: 'Trip' }).click();
  await page.getByText(/^3 rows · /).waitFor();
  await page.goto(new URL('/console/#/entities/expenses/new', product.url).href);
  await page.getByText('paidBy is taken from your sign-in.').waitFor();
  // The schema has one value for a status, and a new one for each id.
  await page.getByLabel('status default draft').waitFor();
  await page.getByLabel('expenseId key, generated if empty').waitFor();
  await page.getByText('Required: to must not be before from.').waitFor();
  const field = page.getByRole('combobox', { name: /^groupId/ });
  await expect.poll(() => field.evaluate((input) => Object(input).list.options[0].label)).toBe('Trip');
  await field.fill(group.id);
  await page.getByText('Trip', { exact: true }).waitFor();
  await lookAt(page, 'form-with-choices');
  await page.getByLabel('title').fill('Boat');
  await page.getByLabel('amount').fill('3');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Created.').waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('· Boat').waitFor();
  await dialog.getByText('Only roles that read every row of its table, with all fields,').waitFor();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Deleted.').waitFor();
});

test('sorts the loaded rows, and says so where the list goes on', async () => {
  const page = await open('#/entities/expenses', 'user', ann);
  const titles = async () =>
    (await page.getByRole('region', { name: 'Rows of expenses' }).getByRole('link').allTextContents()).join();
  await page.getByRole('button', { name: 'amount', exact: true }).click();
  await page.getByText('Sorted by amount.').waitFor();
  expect(await titles()).toBe('Pizza,Hotel,Train');
  await page.getByRole('button', { name: 'amount', exact: true }).click();
  await expect.poll(titles).toBe('Train,Hotel,Pizza');
  expect(await page.getByRole('columnheader', { name: 'amount' }).getAttribute('aria-sort')).toBe('descending');
  // A list of which one page is loaded, and the next one is on its way.
  await page.route('**/api/expenses?*', async (route) => {
    if (route.request().url().includes('continuation')) return;
    const response = await route.fetch();
    const link = '</api/expenses?continuation=next>; rel="next"';
    return route.fulfill({ response, headers: { ...response.headers(), link } });
  });
  await page.reload();
  await page.getByText(/^3 rows, reading/).waitFor();
  await page.getByRole('button', { name: 'title', exact: true }).click();
  await page.getByText('Only the 3 loaded rows are sorted by title; the list goes on.').waitFor();
  expect(await titles()).toBe('Hotel,Pizza,Train');
  await lookAt(page, 'sorted-part');
  await page.getByRole('button', { name: 'Order of the list' }).click();
  await expect.poll(() => page.getByText('are sorted by').count()).toBe(0);
});

test('edits a cell under the ETag of its row, and asks before the edit is lost', async () => {
  const page = await open('#/entities/expenses', 'user', ann);
  const rows = page.getByRole('region', { name: 'Rows of expenses' });
  const hotel = rows.getByRole('row', { name: 'Hotel' });
  const { items } = (await product.as('user', ann)('GET', '/api/expenses')).body;
  const { expenseId } = items.find(({ title }: { readonly title: string }) => title === 'Hotel');
  const path = `/api/expenses/${group.id}/${expenseId}`;
  await hotel.getByRole('button', { name: 'Edit amount' }).press('Enter');
  const input = hotel.getByRole('textbox', { name: /^amount of/ });
  await input.fill('none');
  await input.press('Enter');
  await hotel.getByText('must be a number').waitFor();
  await input.fill('20');
  await page.getByRole('link', { name: 'groups' }).click();
  const leave = page.getByRole('dialog');
  await leave.getByText('The changes on this page are not saved').waitFor();
  await leave.getByRole('button', { name: 'Cancel' }).click();
  expect((await product.as('user', ann)('PATCH', path, { body: { amount: 15 } })).status).toBe(200);
  await input.press('Enter');
  await hotel.getByText('the row changed meanwhile: the value is now “15”. Enter saves yours').waitFor();
  await lookAt(page, 'cell-with-a-conflict');
  await input.press('Enter');
  await expect.poll(async () => (await product.as('user', ann)('GET', path)).body.amount).toBe(20);
  await hotel.getByRole('cell', { name: /^20 / }).waitFor();
});

test('sets a field of several rows and deletes them, and says which stay as they were', async () => {
  const as = product.as('user', ann);
  const create = async (title: string) =>
    (await as('POST', '/api/expenses', { body: { groupId: group.id, title, amount: 1 } })).body.expenseId;
  const [tea, bun] = [await create('Tea'), await create('Bun')];
  const page = await open('#/entities/expenses', 'user', ann);
  const select = (title: string) => page.getByRole('checkbox', { name: new RegExp(`^Select .* ${title}$`) }).check();
  await select('Tea');
  await select('Bun');
  const bar = page.getByRole('region', { name: 'Selected rows' });
  await bar.getByText('2 rows selected').waitFor();
  await bar.getByRole('button', { name: 'Set a field' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Field').selectOption('amount');
  await dialog.getByLabel('New value').fill('7');
  await lookAt(page, 'set-of-several');
  await dialog.getByRole('button', { name: 'Set', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  for (const id of [tea, bun]) expect((await as('GET', `/api/expenses/${group.id}/${id}`)).body.amount).toBe(7);
  // Nobody deletes an expense that is final.
  expect((await as('PATCH', `/api/expenses/${group.id}/${bun}`, { body: { status: 'final' } })).status).toBe(200);
  await bar.getByRole('button', { name: 'Delete selected' }).click();
  await lookAt(page, 'delete-of-several');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByText(/^1 of 2 rows stay as they were\..*Bun/).waitFor();
  expect((await as('GET', `/api/expenses/${group.id}/${tea}`)).status).toBe(404);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await bar.getByText('1 row selected').waitFor();
});

test('the support sees the first rows of each entity', async () => {
  const page = await open('#/entities/expenses', 'support', 'sue@contoso.com');
  await page.getByText(/^\d rows in the table · /).waitFor();
  await page.getByRole('cell', { name: 'Hotel' }).waitFor();
  await lookAt(page, 'rows-of-the-support');
});
