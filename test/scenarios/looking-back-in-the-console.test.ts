import { expect, test } from 'vitest';
import { lookAt, openPart, useConsole } from '../console.ts';
import { pause, useBackedUpProduct } from '../looking-back/backed-up-product.ts';
import { BACKUP_ACCOUNTS } from '../storage.ts';

/** The past of rows, and deletes that are taken back, in the served console. */

const product = useBackedUpProduct(import.meta.url, BACKUP_ACCOUNTS.console);
const { open } = await useConsole(import.meta.url, { product });
const everything = ['operator', 'hr'];
const hr = product.as('hr', 'hr@contoso.com');

const employee = (department: string, number: number, over: object = {}) => ({
  department,
  employeeId: String(number).padStart(6, '0'),
  email: `e${number}@${department.toLowerCase()}.example`,
  owner: 'ann@contoso.com',
  grade: 1,
  ...over,
});
const toField = (at: string) => at.slice(0, 'yyyy-MM-ddTHH:mm:ss'.length);
/** The field of an instant has whole seconds. */
async function nextSecond(): Promise<string> {
  const from = Date.now();
  for (;;) {
    const at = await pause();
    if (Math.floor(Date.parse(at) / 1_000) > Math.floor(from / 1_000)) return toField(at);
  }
}

test('shows the versions of a row, and the row and its partition as of an instant', { tags: ['slow'] }, async () => {
  await hr('POST', '/api/employees', { body: employee('Console', 1) });
  await hr('POST', '/api/employees', { body: employee('Console', 2) });
  const at = await nextSecond();
  await hr('PATCH', '/api/employees/Console/000001', { body: { grade: 7 } });
  await hr('DELETE', '/api/employees/Console/000002');
  const page = await open('#/entities/employees/rows/Console/000001', everything, 'olga@contoso.com');
  await openPart(page, 'Versions');
  const changes = page.getByRole('region', { name: 'Changes of values, newest first' });
  await changes
    .getByRole('row')
    .filter({ hasText: /grade.*1.*7/ })
    .waitFor();
  await page.getByLabel('As of (UTC').fill(at);
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('Nothing here can be changed').waitFor();
  await expect.poll(() => page.locator('dl.field-list').last().innerText()).toMatch(/grade\s+1\b/);
  await lookAt(page, 'looking-back-row');
  await page.goto(`${product.url}/console/#/entities/employees/rows/Console/000002`);
  await page.getByText('There is no row with this key.').waitFor();
  await openPart(page, 'Versions');
  await changes.getByRole('cell', { name: 'deleted' }).waitFor();
  await page.goto(`${product.url}/console/#/entities/employees/rows?key.department=Console`);
  await page.getByText('1 row', { exact: false }).first().waitFor();
  await page.getByLabel('As of (UTC').fill(at);
  await page.getByRole('form', { name: 'As of' }).getByRole('button', { name: 'Show' }).click();
  await page.getByText('2 rows').waitFor();
  // What is shown is not what a change would change.
  for (const name of [/^Edit/, 'New row']) expect(await page.getByRole('button', { name }).count()).toBe(0);
  expect(await page.getByRole('checkbox').count()).toBe(0);
  await lookAt(page, 'looking-back-list');
  await page.getByRole('button', { name: 'Back to now' }).click();
  await page.getByText('1 row', { exact: false }).first().waitFor();
});

test('takes a delete of many rows back by two clicks from the audit log', { tags: ['slow'] }, async () => {
  const actions = Array.from({ length: 12 }, (_, index) => ({ create: employee('Undo', index) }));
  await hr('POST', '/api/employees/batch', { body: { actions } });
  await hr('PATCH', '/api/employees/Undo/000003', { body: { grade: 9 } });
  await pause();
  expect((await hr('DELETE', '/api/employees/Undo?all=true')).body.deleted).toBe(12);
  await hr('POST', '/api/employees', { body: employee('Undo', 1, { grade: 5 }) });
  const page = await open('#/operators/audit', everything, 'olga@contoso.com');
  const deletes = page.getByRole('row').filter({ hasText: 'delete employees' }).filter({ hasText: 'hr@contoso.com' });
  await deletes.first().getByRole('button', { name: 'Undelete…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/rows would come back/).waitFor();
  await lookAt(page, 'undelete-dialog');
  await dialog.getByRole('button', { name: 'Undelete', exact: true }).click();
  await page.getByText(/1[12] rows restored, 1 existing left as they are/).waitFor();
  await lookAt(page, 'audit-log');
  expect((await hr('GET', '/api/employees/Undo/000003')).body.grade).toBe(9);
  expect((await hr('GET', '/api/employees/Undo/000001')).body.grade).toBe(5);
});

test('shows the state of the backup', { tags: ['slow'] }, async () => {
  await hr('POST', '/api/employees', { body: employee('Backup', 1) });
  const page = await open('#/operators/backup', everything, 'olga@contoso.com');
  await page.getByText('Everything can be restored.').waitFor();
  await page.getByRole('row', { name: 'Journal of changes up to date' }).waitFor();
  await lookAt(page, 'backup');
});

test('offers the past only to the roles of the backup', { tags: ['slow'] }, async () => {
  await hr('POST', '/api/employees', { body: employee('Guests', 1) });
  const page = await open('#/entities/employees/rows/Guests/000001', 'hr');
  await page.getByText('Versions').waitFor();
  expect(await page.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
});
