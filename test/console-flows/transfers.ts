import { readFile } from 'node:fs/promises';
import type { Page, Request } from 'playwright-core';
import { expect, test } from 'vitest';
import { type ConsoleHarness, dropFile, holdFirst, lookAt } from '../console.ts';
import type { Client } from '../product.ts';

const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const inputOf = (page: Page) => page.getByLabel('CSV or NDJSON file');
const isBatch = (request: Request) => request.url().endsWith('/batch');

async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button, exact: true }).click(),
  ]);
  return readFile(await download.path(), 'utf8');
}

/** Import and export of a model with employees and people. */
export function testTransfers({ product, open }: ConsoleHarness): void {
  const hr: Client = (...request) => product.as('hr')(...request);

  test('imports a CSV file by its types, and saves the rejected rows, which can be imported again', async () => {
    const rows = Array.from({ length: 250 }, (_, n) => {
      const id = String(900_100 + n);
      return `Import,${id},p${id}@contoso.com,"Ann, ${n}",Lee,${n === 7 ? 'old' : 30}`;
    });
    const header = 'department,employeeId,email,firstName,lastName,age';
    const page = await open('#/entities/employees/transfer', 'hr');
    await page
      .getByText(
        'No file has been imported in this tab. Each row needs department, employeeId, email, firstName and lastName.',
      )
      .waitFor();
    await lookAt(page, 'import-of-nothing');
    await inputOf(page).setInputFiles(file('people.csv', `${[header, ...rows].join('\r\n')}\r\n`));
    await page.getByText('people.csv: 250 rows read, 249 written, 0 unchanged, 1 rejected.').waitFor();
    await lookAt(page, 'import');
    const { body } = await hr('GET', '/api/employees/Import/900108');
    expect(body).toMatchObject({ firstName: 'Ann, 8', age: 30 });
    expect((await hr('GET', '/api/employees/Import/900107')).status).toBe(404);
    expect(JSON.parse(await saved(page, 'Save the reasons'))).toMatchObject({
      line: 9,
      reason: expect.stringMatching(/age/),
    });
    const rejected = await saved(page, 'Save the rejected rows');
    await inputOf(page).setInputFiles(file('rejected.ndjson', rejected.replace('"old"', '31')));
    await page.getByText('rejected.ndjson: 1 row read, 1 written, 0 unchanged, 0 rejected.').waitFor();
    expect((await hr('GET', '/api/employees/Import/900107')).body.age).toBe(31);
  });

  test('rejects or replaces rows that exist, and says so of columns and lines that are wrong', async () => {
    const line = (text: object) =>
      JSON.stringify({ country: 'NO', personId: 'p1', kind: 'employee', jobTitle: 'Clerk', firstName: 'A', ...text });
    const page = await open('#/entities/people/transfer', 'hr');
    await inputOf(page).setInputFiles(file('people.ndjson', `${line({})}\n\nnot json\n`));
    await page.getByText('people.ndjson: 2 rows read, 1 written, 0 unchanged, 1 rejected.').waitFor();
    await page.getByText('The line is not a JSON object.').waitFor();
    await inputOf(page).setInputFiles(file('again.ndjson', `${line({ firstName: 'B' })}\nnot json\n`));
    await page.getByText('again.ndjson: 2 rows read, 0 written, 0 unchanged, 2 rejected.').waitFor();
    // The API rejects the first line later than the console the second one.
    const rejected = page.getByRole('region', { name: 'Rejected rows' }).getByRole('row');
    expect((await rejected.allTextContents()).map((text) => text.charAt(0))).toEqual(['L', '1', '2']);
    await page.getByRole('radio', { name: 'are replaced' }).check();
    await inputOf(page).setInputFiles(file('replace.ndjson', line({ firstName: 'B' })));
    await page.getByText('replace.ndjson: 1 row read, 1 written, 0 unchanged, 0 rejected.').waitFor();
    expect((await hr('GET', '/api/people/NO/p1')).body.firstName).toBe('B');
    await inputOf(page).setInputFiles(file('wrong.csv', 'country,colour\nNO,red\n'));
    await page.getByText('The header has columns that are not fields of people: colour.').waitFor();
  });

  test('exports a partition of several pages as NDJSON and as CSV', async () => {
    const people = (from: number) =>
      Array.from({ length: 100 }, (_, n) => ({
        put: { country: 'SE', personId: `s${from + n}`, kind: 'employee', jobTitle: 'Clerk', firstName: `"Ann", ${n}` },
      }));
    for (let from = 0; from < 1_200; from += 100)
      expect((await hr('POST', '/api/people/batch', { body: { actions: people(from) } })).body.results[0].status).toBe(
        200,
      );
    const page = await open('#/entities/people/transfer', 'hr');
    await page.getByLabel('country').fill('SE');
    const lines = (await saved(page, 'Export')).trim().split('\n');
    expect([lines.length, JSON.parse(lines[0] ?? '').country]).toEqual([1_200, 'SE']);
    await page.getByText('1,200 rows exported.').waitFor();
    await lookAt(page, 'export');
    await page.getByRole('radio', { name: 'CSV' }).check();
    const csv = (await saved(page, 'Export')).trim().split('\r\n');
    expect(csv).toHaveLength(1_201);
    expect(csv[1]).toContain('"""Ann"", 0"');
    const { body } = await hr('DELETE', '/api/people/SE?all=true');
    expect(body.deleted).toBeGreaterThan(0);
  });

  /** Rows of people in a country of their own. */
  const peopleOf = (country: string, count: number) =>
    Array.from({ length: count }, (_, n) =>
      JSON.stringify({ country, personId: `p${n}`, kind: 'employee', jobTitle: 'Clerk', firstName: 'A' }),
    ).join('\n');

  test('imports a file that is dropped', async () => {
    const page = await open('#/entities/people/transfer', 'hr');
    await dropFile(page.locator('.drop-zone'), file('dropped.ndjson', peopleOf('DK', 2)));
    await page.getByText('dropped.ndjson: 2 rows read, 2 written, 0 unchanged, 0 rejected.').waitFor();
  });

  test('cancels an import, and imports the file again without a duplicate', async () => {
    const page = await open('#/entities/people/transfer', 'hr');
    const { held, release } = await holdFirst(page, isBatch);
    const people = file('people.ndjson', peopleOf('FI', 150));
    await inputOf(page).setInputFiles(people);
    await held;
    await page.getByRole('progressbar').waitFor();
    await lookAt(page, 'import-running');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('alert').getByText('The import was canceled.').waitFor();
    await release();
    await page.getByRole('radio', { name: 'are replaced' }).check();
    await inputOf(page).setInputFiles(people);
    await page.getByText(/^people.ndjson: 150 rows read, \d+ written, \d+ unchanged, 0 rejected\.$/).waitFor();
    expect((await hr('GET', '/api/people/FI?top=1000')).body.items).toHaveLength(150);
  });

  test('sends rows again that are busy', async () => {
    const page = await open('#/entities/people/transfer', 'hr');
    let isBusy = true;
    await page.route('**/api/people/batch', async (route) => {
      if (!isBusy) return route.continue();
      isBusy = false;
      const problem = { type: 'about:blank', title: 'Busy', status: 503, code: 'busy', detail: 'Try again.' };
      return route.fulfill({ json: { results: Array.from({ length: 3 }, () => ({ status: 503, problem })) } });
    });
    await inputOf(page).setInputFiles(file('busy.ndjson', peopleOf('IS', 3)));
    await page.getByText('busy.ndjson: 3 rows read, 3 written, 0 unchanged, 0 rejected.').waitFor();
    expect(isBusy).toBe(false);
    expect((await hr('GET', '/api/people/IS')).body.items).toHaveLength(3);
  });

  test('continues an import whose page is left, and asks before the tab closes', async () => {
    const page = await open('#/entities/people/transfer', 'hr');
    const { held, release } = await holdFirst(page, isBatch);
    await inputOf(page).setInputFiles(file('people.ndjson', peopleOf('EE', 5)));
    await held;
    await page.getByText('continues on other pages').waitFor();
    // Its page sends no requests of its own.
    await page.getByRole('link', { name: 'logins', exact: true }).first().click();
    await page.getByText('The import of people.ndjson continues while this tab is open (0 %).').waitFor();
    await lookAt(page, 'import-elsewhere');
    const asked = page.waitForEvent('dialog');
    await page.close({ runBeforeUnload: true });
    const dialog = await asked;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.dismiss();
    await release();
    await page.getByText('The import of people.ndjson').waitFor({ state: 'detached' });
    // The import belongs to the page where it began.
    await page.getByText('This page: no requests').waitFor();
    await page.getByRole('link', { name: 'people', exact: true }).first().click();
    await page.getByRole('link', { name: 'Import and export' }).click();
    await page.getByText('people.ndjson: 5 rows read, 5 written, 0 unchanged, 0 rejected.').waitFor();
    expect((await hr('GET', '/api/people/EE')).body.items).toHaveLength(5);
  });

  test('cancels an export and exports again', async () => {
    expect((await hr('POST', '/api/people', { body: JSON.parse(peopleOf('LV', 1)) })).status).toBe(201);
    const page = await open('#/entities/people/transfer', 'hr');
    const { held, release } = await holdFirst(page, (request) => request.url().includes('/api/people/LV'));
    await page.getByLabel('country').fill('LV');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    await held;
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('alert').getByText('The export was canceled.').waitFor();
    await release();
    const [line = ''] = (await saved(page, 'Export')).split('\n');
    expect(JSON.parse(line)).toMatchObject({ country: 'LV', personId: 'p0' });
  });
}
