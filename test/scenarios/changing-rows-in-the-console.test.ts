import type { Page } from 'playwright-core';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { lookAt, useConsole } from '../console.ts';
import { eventually } from '../product.ts';
import { somebody } from '../world.ts';

const { product, open } = await useConsole(import.meta.url);
const ROLES = ['hr', 'operator'];
let id = '';
let path = '';
let hr: ReturnType<typeof product.as>;

beforeAll(async () => {
  hr = product.as('hr');
});
beforeEach(async () => {
  const body = somebody({ department: 'Sales', jobTitle: 'Clerk', phone: '555' });
  id = body.employeeId;
  path = `/api/employees/Sales/${id}`;
  expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
});

const openRow = () => open(`#/entities/employees/rows/Sales/${id}`, ROLES);
const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true });

test('validates a form as one types, and sends nothing that is invalid', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await field(page, 'age').fill('old');
  await page.getByText('must be a number').waitFor();
  await field(page, 'age').fill('151');
  await page.getByText('must be at most 150').waitFor();
  await page.getByLabel('firstName').fill('');
  await page.getByText('is required').waitFor();
  await lookAt(page, 'form-with-problems');
  await page.getByRole('button', { name: 'Save' }).click();
  expect(await page.getByLabel('firstName').evaluate((input) => input === input.ownerDocument.activeElement)).toBe(
    true,
  );
  expect((await hr('GET', path)).body.firstName).toBe('Ann');
});

test('shows the problem of the API at its field', async () => {
  const taken = somebody({ department: 'Sales' });
  expect((await hr('POST', '/api/employees', { body: taken })).status).toBe(201);
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('email').fill(taken.email);
  await page.getByRole('button', { name: 'Save' }).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.textContent()).toContain('email');
});

test('saves a change under its ETag, and undoes it', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('jobTitle').fill('Sales Manager');
  await page.getByRole('button', { name: 'Show what saving would do' }).click();
  await page.getByText(/\d+ storage transactions/).waitFor();
  await lookAt(page, 'form-explained');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved jobTitle').waitFor();
  expect((await hr('GET', path)).body.jobTitle).toBe('Sales Manager');
  await lookAt(page, 'saved');
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Clerk', { exact: true }).waitFor();
  expect((await hr('GET', path)).body).toMatchObject({ jobTitle: 'Clerk', phone: '555' });
});

test('refuses an undo that would overwrite another change', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('jobTitle').fill('Buyer');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved jobTitle').waitFor();
  await hr('PATCH', path, { body: { jobTitle: 'Director' } });
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Precondition failed').waitFor();
  expect((await hr('GET', path)).body.jobTitle).toBe('Director');
});

test('shows both changes of a conflict side by side, and saves the choice', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('jobTitle').fill('Buyer');
  await page.getByLabel('phone').fill('556');
  await hr('PATCH', path, { body: { jobTitle: 'Director', age: 44 } });
  await page.getByRole('button', { name: 'Save' }).click();
  const conflict = page.getByRole('region', { name: 'Conflict', exact: true });
  await conflict.waitFor();
  const rowOf = (name: string) => conflict.getByRole('row', { name }).getByRole('cell').allTextContents();
  expect(await rowOf('jobTitle')).toEqual(['Clerk', 'Buyer', 'Director']);
  expect(await rowOf('age')).toEqual(['–', 'not changed', '44']);
  await lookAt(page, 'conflict');
  await conflict.getByRole('radio', { name: 'Buyer' }).check();
  await conflict.getByRole('button', { name: 'Save my choice' }).click();
  await page.getByText(/Saved (jobTitle, phone|phone, jobTitle)/).waitFor();
  expect((await hr('GET', path)).body).toMatchObject({ jobTitle: 'Buyer', phone: '556', age: 44 });
});

test('shows the children, the places in storage and the history of a row', async () => {
  await hr('POST', '/api/reviews', { body: { department: 'Sales', employeeId: id, year: 2026, rating: 4 } });
  await hr('PATCH', path, { body: { jobTitle: 'Head of sales' } });
  const page = await openRow();
  await page.getByText('Children: reviews').click();
  await page.getByRole('link', { name: '2026' }).waitFor();
  await page.getByText('Where it is stored').click();
  const places = page.getByRole('region', { name: 'Rows and index entries' });
  await places.waitFor();
  const kinds = (await places.getByRole('row').allTextContents()).slice(1);
  const starts = ['the row', 'count: departments', 'child: reviews'];
  const indexes = ['email', 'lastName', 'lastNameCompanyWide', 'emailCompanyWide', 'id'];
  for (const start of [...starts, ...indexes.map((name) => `index entry: ${name}`)])
    expect(
      kinds.filter((kind) => kind.startsWith(`${start}employees`)),
      start,
    ).toHaveLength(1);
  await page.getByText('History').click();
  const history = page.getByRole('region', { name: 'Changes, newest first' });
  await history.waitFor();
  expect(await history.getByRole('row').nth(1).textContent()).toContain('replacejobTitle');
  await lookAt(page, 'row');
});

test('creates a row, shows what its deletion would do, deletes it and undoes that', async () => {
  const page = await open('#/entities/people/new?country=NZ', 'hr');
  await field(page, 'personId key').fill('42');
  await page.getByLabel('firstName').fill('Ann');
  await page.getByLabel('kind').selectOption('employee');
  await page.getByLabel('jobTitle').fill('Clerk');
  await lookAt(page, 'new-row');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Created.').waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/1 storage transaction/).waitFor();
  await dialog.getByText('The delete can be undone until this page is left.').waitFor();
  await lookAt(page, 'delete');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Deleted.').waitFor();
  expect((await hr('GET', '/api/people/NZ/42')).status).toBe(404);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Clerk', { exact: true }).waitFor();
  expect((await hr('GET', '/api/people/NZ/42')).body).toMatchObject({ firstName: 'Ann', jobTitle: 'Clerk' });
});

test('says before a delete that a row with children cannot be restored, and offers no undo', async () => {
  const review = { department: 'Sales', employeeId: id, year: 2025, rating: 4 };
  expect((await hr('POST', '/api/reviews', { body: review })).status).toBe(201);
  const page = await openRow();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  const reason = 'The delete cannot be undone: its children (reviews) are deleted with it.';
  await dialog.getByText(reason).waitFor();
  await dialog.getByText(/\d+ storage transactions?/).waitFor();
  await lookAt(page, 'delete-with-children');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('status').getByText(reason).waitFor();
  expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0);
  expect((await hr('GET', `/api/reviews/Sales/${id}/2025`)).status).toBe(404);
});

test('deletes a row whose children changed while its dialog was open only when asked again', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  const deletesReview = dialog.getByText(`${id}_2024`);
  await dialog.getByText(/\d+ storage transactions?/).waitFor();
  expect(await deletesReview.count()).toBe(0);
  const review = { department: 'Sales', employeeId: id, year: 2024, rating: 4 };
  expect((await hr('POST', '/api/reviews', { body: review })).status).toBe(201);
  await hr('PATCH', path, { body: { jobTitle: 'Director' } });
  await dialog.getByRole('button', { name: 'Delete' }).click();
  const failure = dialog.getByText('Delete failed');
  await failure.waitFor();
  await dialog.getByText('The row or its children changed since the page read them.').waitFor();
  // It is in view, below steps that are longer than the dialog.
  const [{ y = 0 } = {}, { y: cancel = 0 } = {}] = [
    (await failure.boundingBox()) ?? undefined,
    (await dialog.getByRole('button', { name: 'Cancel' }).boundingBox()) ?? undefined,
  ];
  expect(y > 0 && y < cancel && cancel < 800, `${y} ${cancel}`).toBe(true);
  expect((await hr('GET', path)).status).toBe(200);
  // Behind the dialog is what is stored now, and the dialog says what the delete would do to it.
  await page.getByText('Director').waitFor();
  await deletesReview.first().waitFor();
  await lookAt(page, 'delete-of-a-changed-row');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Deleted.').waitFor();
  expect((await hr('GET', path)).status).toBe(404);
});

test('moves a row after showing the steps, and archives it', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Move' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('New department').fill('Marketing');
  await dialog.getByRole('button', { name: 'Show what it would do' }).click();
  await dialog.getByText(/\d+ storage transactions?/).waitFor();
  await lookAt(page, 'move');
  await dialog.getByRole('button', { name: 'Move', exact: true }).click();
  await dialog.getByRole('link', { name: 'Open the row' }).click();
  await page.getByRole('heading', { name: `Marketing / ${id}` }).waitFor();
  await page.getByRole('button', { name: 'Archive' }).click();
  await page
    .getByRole('dialog')
    .getByText(/\d+ storage transactions?/)
    .waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click();
  await page.getByRole('link', { name: 'Open the row' }).click();
  await page.getByRole('heading', { name: `Marketing / ${id}` }).waitFor();
  expect(page.url()).toContain('formeremployees');
  const archived = `/api/formeremployees/Marketing/${id}`;
  expect(
    (
      await eventually(
        () => hr('GET', archived),
        ({ status }) => status === 200,
      )
    ).status,
  ).toBe(200);
});
