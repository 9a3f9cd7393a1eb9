import type { Page } from 'playwright-core';
import { beforeEach, expect, test } from 'vitest';
import { type ConsoleHarness, lookAt, openPart } from '../console.ts';
import { type Client, eventually } from '../product.ts';
import { somebody } from '../world.ts';

const ROLES = ['hr', 'operator'];
const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true });

/** Forms and actions of a model with employees, who can be moved and archived, and people, and with reviews of employees. Each test has a new employee in the department Sales. */
export function testRows({ product, open }: ConsoleHarness) {
  const hr: Client = (...request) => product.as('hr')(...request);
  const employee = { id: '', path: '' };
  const openRow = () => open(`#/entities/employees/rows/Sales/${employee.id}`, ROLES);

  beforeEach(async () => {
    const body = somebody({ department: 'Sales', jobTitle: 'Clerk', phone: '555' });
    employee.id = body.employeeId;
    employee.path = `/api/employees/Sales/${body.employeeId}`;
    expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
  });

  test('shows who may do what, and tells operators what a caller may do with a row', async () => {
    const page = await openRow();
    await openPart(page, 'What a caller may do');
    await page.getByLabel(/^Subject/).fill('ann');
    await page.getByRole('checkbox', { name: 'reader', exact: true }).check();
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: 'read allowed' }).waitFor();
    await page.getByRole('heading', { name: 'update not allowed' }).waitFor();
    await page.getByText(/^Hidden fields: .*nationalId/).waitFor();
    await lookAt(page, 'what-a-caller-may-do');
    await page.goto(`${product.url}/console/#/entities/employees/access`);
    const table = page.getByRole('region', { name: 'Who may do what with employees' });
    await table.getByText('create, update, delete').waitFor();
    await lookAt(page, 'who-may-do-what');
    await page.getByLabel('As the role').selectOption('reader');
    const summary = page.getByRole('list', { name: 'As reader' });
    await summary.getByText(/^Reads every row: by partition \(department\), key \(department, employeeId\)/).waitFor();
    await summary.getByText('Writes nothing.').waitFor();
    await summary.getByText(/^Does not see .*nationalId/).waitFor();
    expect(await table.getByText('create, update, delete').count()).toBe(0);
    await lookAt(page, 'access-of-a-role');
  });

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
    const firstName = page.getByLabel('firstName');
    await expect.poll(() => firstName.evaluate((input) => input === input.ownerDocument.activeElement)).toBe(true);
    expect((await hr('GET', employee.path)).body.firstName).toBe('Ann');
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
    expect((await hr('GET', employee.path)).body.jobTitle).toBe('Sales Manager');
    await lookAt(page, 'saved');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Clerk', { exact: true }).waitFor();
    await expect
      .poll(async () => (await hr('GET', employee.path)).body)
      .toMatchObject({ jobTitle: 'Clerk', phone: '555' });
  });

  test('shows both changes of a conflict side by side, and saves the choice', async () => {
    const page = await openRow();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('jobTitle').fill('Buyer');
    await page.getByLabel('phone').fill('556');
    await hr('PATCH', employee.path, { body: { jobTitle: 'Director', age: 44 } });
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
    expect((await hr('GET', employee.path)).body).toMatchObject({ jobTitle: 'Buyer', phone: '556', age: 44 });
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
    await expect
      .poll(async () => (await hr('GET', '/api/people/NZ/42')).body)
      .toMatchObject({ firstName: 'Ann', jobTitle: 'Clerk' });
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
    await page.getByText('Moved.').waitFor();
    await page.getByRole('link', { name: 'Open the row' }).click();
    await page.getByRole('heading', { name: `Marketing / ${employee.id}` }).waitFor();
    await page.getByRole('button', { name: 'Archive' }).click();
    await page
      .getByRole('dialog')
      .getByText(/\d+ storage transactions?/)
      .waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click();
    await page.getByRole('link', { name: 'Open the row' }).click();
    await page.getByRole('heading', { name: `Marketing / ${employee.id}` }).waitFor();
    await page.waitForURL(/formeremployees/);
    const archived = `/api/formeremployees/Marketing/${employee.id}`;
    expect(
      (
        await eventually(
          () => hr('GET', archived),
          ({ status }) => status === 200,
        )
      ).status,
    ).toBe(200);
  });

  test('shows the children, the places in storage and the history of a row', async () => {
    await hr('POST', '/api/reviews', { body: { department: 'Sales', employeeId: employee.id, year: 2026, rating: 4 } });
    await hr('PATCH', employee.path, { body: { jobTitle: 'Head of sales' } });
    const page = await openRow();
    await openPart(page, 'Children: reviews');
    await page.getByRole('link', { name: '2026' }).waitFor();
    await openPart(page, 'Where it is stored');
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
    await openPart(page, 'History');
    const history = page.getByRole('region', { name: 'Changes, newest first' });
    await history.waitFor();
    expect(await history.getByRole('row').nth(1).textContent()).toContain('replacejobTitle');
    await lookAt(page, 'row');
  });

  test('stores an empty text, and removes a value', async () => {
    const page = await openRow();
    const edit = async () => {
      await page.getByRole('button', { name: 'Edit' }).click();
      return page.getByRole('checkbox', { name: /store an empty text/ });
    };
    const isEmpty = await edit();
    expect(await isEmpty.count()).toBe(0);
    await page.getByLabel('phone').fill('');
    await isEmpty.check();
    await lookAt(page, 'empty-text');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved phone').waitFor();
    expect((await hr('GET', employee.path)).body.phone).toBe('');
    await page.getByText('empty text', { exact: true }).waitFor();
    await edit();
    await isEmpty.uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved phone').waitFor();
    await expect.poll(async () => (await hr('GET', employee.path)).body).not.toHaveProperty('phone');
  });

  return { hr, employee, openRow };
}
