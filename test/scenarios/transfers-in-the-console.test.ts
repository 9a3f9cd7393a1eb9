import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { lookAt, useConsole } from '../console.ts';

/** Import and export of the tests' model. */

const { product, open } = await useConsole(import.meta.url);
const hr = product.as('hr');

const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const inputOf = (page: Page) => page.getByLabel('CSV or NDJSON file');

async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button, exact: true }).click(),
  ]);
  return readFile(await download.path(), 'utf8');
}

test('imports a CSV file by its types, and saves the rejected rows, which can be imported again', async () => {
  const rows = Array.from({ length: 250 }, (_, n) => {
    const id = String(100 + n).padStart(6, '0');
    return `Import,${id},p${id}@contoso.com,"Ann, ${n}",Lee,${n === 7 ? 'old' : 30}`;
  });
  const header = 'department,employeeId,email,firstName,lastName,age';
  const page = await open('#/entities/employees/transfer', 'hr');
  await inputOf(page).setInputFiles(file('people.csv', `${[header, ...rows].join('\r\n')}\r\n`));
  await page
    .getByText('people.csv: 250 rows read, 249 written, 0 unchanged, 1 rejected.')
    .waitFor({ timeout: 120_000 });
  await lookAt(page, 'import');
  const { body } = await hr('GET', '/api/employees/Import/000108');
  expect(body).toMatchObject({ firstName: 'Ann, 8', age: 30 });
  expect((await hr('GET', '/api/employees/Import/000107')).status).toBe(404);
  expect(JSON.parse(await saved(page, 'Save the reasons'))).toMatchObject({
    line: 9,
    reason: expect.stringMatching(/age/),
  });
  const rejected = await saved(page, 'Save the rejected rows');
  await inputOf(page).setInputFiles(file('rejected.ndjson', rejected.replace('"old"', '31')));
  await page.getByText('rejected.ndjson: 1 rows read, 1 written, 0 unchanged, 0 rejected.').waitFor();
  expect((await hr('GET', '/api/employees/Import/000107')).body.age).toBe(31);
});

test('rejects or replaces rows that exist, and says so of columns and lines that are wrong', async () => {
  const line = (text: object) =>
    JSON.stringify({ country: 'NO', personId: 'p1', kind: 'employee', jobTitle: 'Clerk', firstName: 'A', ...text });
  const page = await open('#/entities/people/transfer', 'hr');
  await inputOf(page).setInputFiles(file('people.ndjson', `${line({})}\n\nnot json\n`));
  await page.getByText('people.ndjson: 2 rows read, 1 written, 0 unchanged, 1 rejected.').waitFor();
  await page.getByText('The line is not a JSON object.').waitFor();
  await inputOf(page).setInputFiles(file('again.ndjson', line({ firstName: 'B' })));
  await page.getByText('again.ndjson: 1 rows read, 0 written, 0 unchanged, 1 rejected.').waitFor();
  await page.getByRole('radio', { name: 'are replaced' }).check();
  await inputOf(page).setInputFiles(file('replace.ndjson', line({ firstName: 'B' })));
  await page.getByText('replace.ndjson: 1 rows read, 1 written, 0 unchanged, 0 rejected.').waitFor();
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
