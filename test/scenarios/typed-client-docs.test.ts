import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { launchBrowser } from '../browser.ts';
import { checkTypes } from '../check-types.ts';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** Compiles and runs every TypeScript example of docs/typed-client.md, and that of README.md; the page in a real browser. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const text = await readFile(join(ROOT, 'docs', 'typed-client.md'), 'utf8');
const snippets = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
const named = (file: string) => snippets.find((code) => code.startsWith(`// ${file}\n`)) ?? expect.fail(file);
/** The others are one program. */
const guide = snippets.filter((code) => !code.startsWith('// '));
/** None in a repository whose README is its own. */
const readme = /^```ts\n(import \{ createClient.*?)^```$/ms.exec(await readFile(join(ROOT, 'README.md'), 'utf8'))?.[1];
const GIVEN = `
const { ROWKEY_TOKEN: given = '', JONES_TOKEN: tokenOfJones = '', PHOTO = '' } = process.env;
const msal = { acquireTokenSilent: async (_: { scopes: string[]; forceRefresh: boolean }) => ({ accessToken: given }) };
const bytes = Buffer.from(PHOTO, 'base64');
`;
const PHOTO = PNG.toString('base64');

const run = promisify(execFile);
let page = '';
const server = createServer((request, response) => {
  const isScript = request.url?.endsWith('.js') === true;
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
  if (isScript) readFile(join(folder, 'dist', request.url ?? '')).then((code) => response.end(code));
  else response.end(page);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const product = useProduct(import.meta.url, { cors: [origin, 'https://app.contoso.com'] });
const browser = await launchBrowser();
const jones = somebody({ department: 'Sales', employeeId: '000124', firstName: 'Jo', lastName: 'Jones' });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(inject('folder'), 'typed-client-'));
  const installed = join(folder, 'node_modules', 'rowkey');
  await mkdir(installed, { recursive: true });
  // Node runs TypeScript only outside of node_modules, where the link leads.
  await symlink(join(ROOT, 'lib'), join(installed, 'lib'), 'junction');
  const exports = { './client': './lib/client/index.ts', './sign-in': './lib/client/sign-in.ts' };
  await writeFile(join(installed, 'package.json'), JSON.stringify({ name: 'rowkey', type: 'module', exports }));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const model = join(ROOT, 'test', 'fixtures', 'model.ts');
  await writeFile(join(folder, 'model.ts'), `export type { model } from ${JSON.stringify(model)};\n`);
  for (const file of ['page.ts', 'script.ts', 'sign-in.ts']) await writeFile(join(folder, file), named(file));
  const program = guide.join('\n').replaceAll('https://contoso.azurewebsites.net', product.url);
  await writeFile(join(folder, 'guide.ts'), GIVEN + program);
  const example = readme?.replaceAll('http://127.0.0.1:7071', product.url) ?? '';
  await writeFile(join(folder, 'readme.ts'), `const { ROWKEY_TOKEN: TOKEN = '' } = process.env;\n${example}`);
  const hr = product.as('hr');
  const anna = somebody({ department: 'Sales', employeeId: '000123', jobTitle: 'Clerk' });
  for (const body of [anna, jones, somebody({ department: 'Sales' })])
    expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
  const sale = { branch: 'Oslo', saleId: 'S000001', soldOn: '2026-11-20', amount: 12 };
  expect((await hr('POST', '/api/sales', { body: sale })).status).toBe(201);
  const expense = { employeeId: jones.employeeId, amount: 12.5, category: 'Meals' };
  expect((await hr('POST', '/api/expenses', { body: expense })).status).toBe(201);
});
afterAll(async () => {
  if (typeof browser !== 'string') await browser.close();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

test('the examples compile under strict', async () => {
  const options = {
    ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'esnext.array', 'dom', 'dom.iterable'] },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
    ...{
      noEmit: true,
      allowImportingTsExtensions: true,
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
  };
  const files = ['guide.ts', 'page.ts', 'script.ts', 'sign-in.ts', 'readme.ts'];
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files }));
  expect(await checkTypes(folder)).toBe('');
});

/** Runs a file of the folder with Node. */
async function output(file: string): Promise<string> {
  const env = {
    ...{ PATH: process.env.PATH, PHOTO, ROWKEY_URL: `${product.url}/api`, ROWKEY_TOKEN: await product.token('hr') },
    JONES_TOKEN: await product.token('reader', String(jones.email)),
  };
  const { stdout } = await run(process.execPath, [join(folder, file)], { env, cwd: folder });
  return stdout;
}

test('the script lists a department', async () => {
  const lines = (await output('script.ts')).trim().split('\n');
  expect(lines).toHaveLength(4);
  expect(lines).toContain(`Sales ${jones.email}`);
  expect(lines.at(-1)).toBe('3 employees');
});

test('the examples of each task run one after the other', async () => {
  const printed = await output('guide.ts');
  for (const expected of [
    /GET \/employees\/Sales\/000123 200 1 transactions \d+ ms api/,
    /^0 undefined 1$/m,
    /^1 12 12$/m,
    /^2026-11 1$/m,
    /^stored undefined$/m,
    /^failed not-found$/m,
    /^image\/png 70$/m,
    /^storage \S+\/employees\(PartitionKey=/m,
    /^12.5$/m,
    /^invalid-input 400 department /m,
  ])
    expect(printed).toMatch(expected);
});

test('the example of README.md lists a person under the new name', async ({ skip }) => {
  if (!readme) skip('README.md has no example of the client.');
  const june = somebody({ department: 'Sales', lastName: 'Jones', email: 'jonesj@contoso.com' });
  expect((await product.as('hr')('POST', '/api/employees', { body: june })).status).toBe(201);
  expect((await output('readme.ts')).split('\n')).toContain('jonesj@contoso.com');
  const { body } = await product.as('hr')('GET', '/api/employees/by/emailCompanyWide/jonesj@contoso.com');
  expect(body.lastName).toBe('Jones-Smith');
});

test('the page reads the row of its user past the API and changes it through the API', async ({ skip }) => {
  if (typeof browser === 'string') return skip(browser);
  expect(named('page.ts').trim().split('\n').length).toBeLessThanOrEqual(41);
  const resolve = { alias: { 'rowkey/client': join(ROOT, 'lib/client/index.ts') } };
  const bundle = await rolldown({ input: join(folder, 'page.ts'), platform: 'browser', resolve });
  await bundle.write({ dir: join(folder, 'dist'), format: 'es', minify: true });
  await bundle.close();
  page = `<!doctype html><body data-api="${product.url}/api"><script type="module" src="page.js"></script>`;
  const opened = await browser.newPage();
  const token = await product.token('hr', String(jones.email));
  const reader = await product.token('reader', String(jones.email));
  await opened.addInitScript((value) => sessionStorage.setItem('token', value), reader);
  await opened.goto(`${origin}/page.html`);
  await opened.getByRole('heading', { name: 'Jo Jones' }).waitFor();
  const calls = await opened.locator('li').allTextContents();
  expect(calls.map((call) => call.replace(/^(\w+) .*: /, '$1 '))).toEqual([
    'GET api, 0 transactions',
    expect.stringMatching(/^POST api, \d transactions$/),
    'GET storage, 1 transactions',
  ]);
  await opened.evaluate((value) => sessionStorage.setItem('token', value), token);
  await opened.getByRole('button').click();
  await opened.getByText('Saved: 555-0100').waitFor();
  const hr = product.as('hr');
  await hr('PATCH', `/api/employees/Sales/${jones.employeeId}`, { body: { phone: '1' } });
  await opened.getByRole('button').click();
  await opened.getByText('It is 1 by now.').waitFor();
});
