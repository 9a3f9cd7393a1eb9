import { expect, test } from 'vitest';
import { holdFirst, lookAt, useConsole } from '../console.ts';
import { testRows } from '../console-flows/rows.ts';
import { somebody } from '../world.ts';

const ROLES = ['hr', 'operator'];
const harness = await useConsole(import.meta.url);

const { hr, employee, openRow } = testRows(harness);

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

test('shows the message of a check of several fields beside the form, which stays as it is', async () => {
  const page = await openRow();
  const detail = 'The entity is not valid: to must be after from.';
  // The API as it is for a model whose employees have the check.
  await page.route('**/api/employees/**', async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    const json = {
      type: '/api/problems#invalid-input',
      title: 'Validation failed',
      status: 400,
      detail,
      code: 'invalid-input',
    };
    return route.fulfill({ status: 400, contentType: 'application/problem+json', json });
  });
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('jobTitle').fill('Buyer');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText(detail).waitFor();
  expect(await page.getByLabel('jobTitle').inputValue()).toBe('Buyer');
});

test('refuses an undo that would overwrite another change', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('jobTitle').fill('Buyer');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved jobTitle').waitFor();
  await hr('PATCH', employee.path, { body: { jobTitle: 'Director' } });
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Precondition failed').waitFor();
  expect((await hr('GET', employee.path)).body.jobTitle).toBe('Director');
});

test('says before a delete that a row with children cannot be restored, and offers no undo', async () => {
  const review = { department: 'Sales', employeeId: employee.id, year: 2025, rating: 4 };
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
  expect((await hr('GET', `/api/reviews/Sales/${employee.id}/2025`)).status).toBe(404);
});

test.each(['Delete', 'Archive', 'Move'])('names the row in the dialog %s', async (action) => {
  const { body: stored } = await hr('GET', employee.path);
  const page = await openRow();
  await page.getByRole('button', { name: action }).click();
  const name = `employees: Sales / ${employee.id} · ${stored.email}`;
  await page.getByRole('dialog', { name }).waitFor();
});

test('offers only what the API allows a role that may not write the children of a row', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).waitFor();
  const removals = page.getByRole('button', { name: /^(Move|Archive|Delete)$/ });
  expect(await removals.allTextContents()).toEqual(['Move', 'Archive', 'Delete']);
  // The console as it is for a model whose reviews another role writes.
  await page.route('**/api/model', async (route) => {
    const model = await (await route.fetch()).json();
    model.entities.reviews.access.write = ['reader'];
    await route.fulfill({ json: model });
  });
  await page.reload();
  await page.getByRole('button', { name: 'Edit' }).waitFor();
  expect(await removals.count()).toBe(0);
});

test('deletes a row whose children changed while its dialog was open only when asked again', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  const deletesReview = dialog.getByText(`${employee.id}_2024`);
  await dialog.getByText(/\d+ storage transactions?/).waitFor();
  expect(await deletesReview.count()).toBe(0);
  await dialog.getByText('With it go its children: no row of reviews.').waitFor();
  const review = { department: 'Sales', employeeId: employee.id, year: 2024, rating: 4 };
  expect((await hr('POST', '/api/reviews', { body: review })).status).toBe(201);
  await hr('PATCH', employee.path, { body: { jobTitle: 'Director' } });
  await dialog.getByRole('button', { name: 'Delete' }).click();
  const failure = dialog.getByText('Delete failed');
  await failure.waitFor();
  await dialog.getByText('The row or its children changed since the page read them.').waitFor();
  // It is in view, below steps that are longer than the dialog.
  const topOf = async (part: typeof failure) => (await part.boundingBox())?.y ?? 0;
  // Both are measured again while the dialog scrolls.
  await expect
    .poll(async () => {
      const [top, cancel] = [await topOf(failure), await topOf(dialog.getByRole('button', { name: 'Cancel' }))];
      return top > 0 && top < cancel && cancel < 800;
    })
    .toBe(true);
  expect((await hr('GET', employee.path)).status).toBe(200);
  // Behind the dialog is what is stored now, and the dialog says what the delete would do to it.
  await page.getByText('Director').waitFor();
  await deletesReview.first().waitFor();
  await dialog.getByText('With it go its children: 1 row of reviews.').waitFor();
  await lookAt(page, 'delete-of-a-changed-row');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Deleted.').waitFor();
  expect((await hr('GET', employee.path)).status).toBe(404);
});

test('counts the children of a row to delete on one page only', async () => {
  const page = await openRow();
  const items = Array.from({ length: 100 }, (_, year) => ({ department: 'Sales', employeeId: employee.id, year }));
  await page.route('**/api/reviews/Sales?*', (route) =>
    route.fulfill({ json: { items }, headers: { link: '</api/reviews/Sales?continuation=next>; rel="next"' } }),
  );
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByText('With it go its children: more than 100 rows of reviews.').waitFor();
});

test('opens a dialog again that was closed before its action failed', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/\d+ storage transactions?/).waitFor();
  await hr('PATCH', employee.path, { body: { jobTitle: 'Director' } });
  const { held, release } = await holdFirst(page, (request) => request.method() === 'DELETE');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await held;
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  await release();
  await dialog.getByText('The row or its children changed since the page read them.').waitFor();
  await lookAt(page, 'error-after-cancel');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect((await hr('GET', employee.path)).status).toBe(200);
});

test('shows on the page that a row was archived whose dialog was closed meanwhile', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Archive' }).click();
  const dialog = page.getByRole('dialog');
  const { held, release } = await holdFirst(page, (request) => request.url().endsWith('/archive'));
  await dialog.getByRole('button', { name: 'Archive' }).click();
  await held;
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  await release();
  await page.getByText('Archived.').waitFor();
  expect(await dialog.count()).toBe(0);
  await lookAt(page, 'archived-after-cancel');
  await page.getByRole('link', { name: 'Open the row' }).click();
  await page.waitForURL(/formeremployees/);
});

test.each([
  ['succeeds', false, 'done.'],
  ['fails', true, 'failed. The row or its children changed'],
])('announces a delete that %s after its page was left', async (_, isChanged, outcome) => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/\d+ storage transactions?/).waitFor();
  if (isChanged) await hr('PATCH', employee.path, { body: { jobTitle: 'Director' } });
  const { held, release } = await holdFirst(page, (request) => request.method() === 'DELETE');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await held;
  // As the Back button of the browser does, which works beside a dialog.
  await page.evaluate("location.hash = '#/entities/people/rows'");
  await page.getByRole('heading', { level: 1, name: 'people' }).waitFor();
  await release();
  const late = page.getByRole(isChanged ? 'alert' : 'status').filter({ hasText: 'Delete the row' });
  await late.waitFor();
  expect(await late.textContent()).toContain(`Delete the row (Sales / ${employee.id} · employees): ${outcome}`);
  await lookAt(page, isChanged ? 'late-error' : 'late-success');
  await late.getByRole('button', { name: 'Dismiss' }).click();
  await late.waitFor({ state: 'detached' });
  expect((await hr('GET', employee.path)).status).toBe(isChanged ? 200 : 404);
});

test('announces that a form was not saved whose page was left, with a link back', async () => {
  const taken = somebody({ department: 'Sales' });
  expect((await hr('POST', '/api/employees', { body: taken })).status).toBe(201);
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('email').fill(taken.email);
  const { held, release } = await holdFirst(page, (request) => request.method() === 'PATCH');
  const save = page.getByRole('button', { name: 'Save' });
  await save.click();
  await held;
  await save.and(page.locator('[disabled]')).waitFor();
  await page.evaluate("location.hash = '#/'");
  await page.getByRole('heading', { level: 1, name: 'Entities' }).waitFor();
  await release();
  const late = page.getByRole('alert').filter({ hasText: 'Save' });
  await late.waitFor();
  expect(await late.textContent()).toMatch(/failed\. .*email/);
  await late.getByRole('link').click();
  await page.getByRole('heading', { name: `Sales / ${employee.id}` }).waitFor();
});

test('asks before a link, the Back button or the end of the tab loses the edits of a form', async () => {
  const page = await harness.open('#/entities/people/rows', ROLES);
  await page.goto(new URL(`/console/#/entities/employees/rows/Sales/${employee.id}`, harness.product.url).href);
  const edit = page.getByRole('button', { name: 'Edit' });
  await edit.click();
  const title = page.getByLabel('jobTitle');
  const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
  const overview = page.getByRole('heading', { level: 1, name: 'Entities' });
  const brand = page.getByRole('link', { name: 'Rowkey', exact: true });
  // A form without edits is left at once.
  await brand.click();
  await overview.waitFor();
  await page.goBack();
  await edit.click();
  await title.fill('Buyer');
  await brand.click();
  await dialog.waitFor();
  await lookAt(page, 'leave');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect([await title.inputValue(), new URL(page.url()).hash]).toEqual([
    'Buyer',
    `#/entities/employees/rows/Sales/${employee.id}`,
  ]);
  const questions: string[] = [];
  page.on('dialog', (question) => {
    questions.push(question.type());
    return question.dismiss();
  });
  await page.close({ runBeforeUnload: true });
  await expect.poll(() => questions).toEqual(['beforeunload']);
  expect(await title.inputValue()).toBe('Buyer');
  await page.evaluate('history.back()');
  await dialog.waitFor();
  await dialog.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('heading', { level: 1, name: 'people' }).waitFor();
  expect(await dialog.count()).toBe(0);
  await page.goForward();
  await page.getByText('Clerk', { exact: true }).waitFor();
  // Cancel ends the edits.
  await edit.click();
  await title.fill('Buyer');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await brand.click();
  await overview.waitFor();
  expect((await hr('GET', employee.path)).body.jobTitle).toBe('Clerk');
});

test('asks before a conflict is left that is not resolved', async () => {
  const page = await openRow();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('jobTitle').fill('Buyer');
  await hr('PATCH', employee.path, { body: { jobTitle: 'Director' } });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('region', { name: 'Conflict', exact: true }).waitFor();
  await page.getByRole('link', { name: 'Rowkey', exact: true }).click();
  await page.getByRole('dialog', { name: 'Leave without saving?' }).waitFor();
});

test('names the entity to which a field of a form refers, and looks up its row', async () => {
  const customer = { city: 'Bern', customerId: 'FORMREF', companyName: 'Form Ltd' };
  expect((await hr('POST', '/api/customers', { body: customer })).status).toBe(201);
  const page = await harness.open('#/entities/orders/new', 'hr');
  await page.getByText('refers to customers').waitFor();
  const lookUp = page.getByRole('button', { name: 'Look up' });
  expect(await lookUp.isDisabled()).toBe(true);
  await page.getByRole('textbox', { name: 'customerId key' }).fill('NOBODY');
  await lookUp.click();
  await page.getByText('customers has no row NOBODY.').waitFor();
  await page.getByRole('textbox', { name: 'customerId key' }).fill('FORMREF');
  await lookUp.click();
  await page.getByText('Bern / FORMREF exists.').waitFor();
  await lookAt(page, 'form-with-a-reference');
  // The console as it is for a model whose orders refer to the lookup table of currencies.
  expect((await hr('POST', '/api/currencies', { body: { currency: 'CHF', title: 'Franc' } })).status).toBe(201);
  await page.route('**/api/model', async (route) => {
    const model = await (await route.fetch()).json();
    model.entities.orders.references = { customerId: { to: 'currencies', by: 'currency' } };
    await route.fulfill({ json: model });
  });
  await page.reload();
  const choice = page.getByRole('combobox', { name: 'customerId key' });
  await choice.selectOption('CHF');
  expect(await lookUp.count()).toBe(0);
  await lookAt(page, 'form-with-a-lookup-table');
});

test('shows a row with a field that cannot be read, and repairs the field', async () => {
  const { body: stored } = await hr('GET', employee.path);
  expect((await hr('PUT', employee.path, { body: { ...stored, nationalId: '1' } })).status).toBe(200);
  const broken = { partitionKey: 'Sales', rowKey: `empid_${employee.id}`, nationalId: 'v1.broken' };
  await harness.product.storage.table('employees').updateEntity(broken, 'Merge');
  expect((await hr('GET', employee.path)).body).toMatchObject({ code: 'needs-repair', field: 'nationalId' });
  const page = await openRow();
  await page.getByText('Edit the row and enter a new value of nationalId.').waitFor();
  await page.getByText('not readable').waitFor();
  await page.getByText('Clerk', { exact: true }).waitFor();
  await lookAt(page, 'row-to-repair');
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('nationalId').fill('2');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved nationalId').waitFor();
  expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0);
  await expect.poll(() => page.getByText('cannot be read').count()).toBe(0);
  expect((await hr('GET', employee.path)).body).toMatchObject({ nationalId: '2', jobTitle: 'Clerk' });
});
