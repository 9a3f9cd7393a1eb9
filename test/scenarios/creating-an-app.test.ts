import { execFile, spawn } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { buildCreate } from '../../local/commands/build-create.ts';
import { buildLibrary } from '../../local/commands/build-library.ts';
import { PAGE_NAMES } from '../../local/create/ask.ts';
import { launchBrowser } from '../browser.ts';
import { PATIENCE_MS } from '../patience.ts';
import { ROOT } from '../start-process.ts';

/** The apps of the packed initializer, with the built package: their types, their tests, and their pages in a browser. */

const tags = ['slow'];
const run = promisify(execFile);
const PAGES = ['plain', 'tanstack'] as const;

let folder: string;
let url: string;
let browser: Awaited<ReturnType<typeof launchBrowser>>;
/** What ends the servers of this file. */
const ends: (() => unknown)[] = [];
const origins = { plain: '', tanstack: '' };
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-creating-'));
  await createApps();
  for (const page of PAGES) origins[page] = await servePage(page);
  url = await startApp('plain', `--port 0 --cors ${origins.plain},${origins.tanstack}`);
  for (const page of PAGES) await npm(page, 'run build', { NODE_ENV: 'production', VITE_API: `${url}/api` });
  browser = await launchBrowser();
});
afterAll(async () => {
  if (typeof browser === 'object') await browser.close();
  for (const end of ends) await end();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** The parent folder has the packages of all apps: those that the apps declare, and nothing else. */
async function createApps(): Promise<void> {
  await buildCreate(join(folder, 'initializer'));
  const { stdout } = await run('npm', ['pack', './initializer', '--json'], { cwd: folder });
  const [{ filename }] = JSON.parse(stdout);
  await run('tar', ['xzf', filename], { cwd: folder });
  const rowkey = join(folder, 'node_modules', 'rowkey');
  await buildLibrary(rowkey);
  const names = new Set<string>();
  for (const page of PAGE_NAMES) {
    await run(process.execPath, ['package/create-rowkey.js', page, '--page', page], { cwd: folder });
    for (const name of await packagesOf(join(folder, page))) names.add(name);
  }
  for (const name of await packagesOf(rowkey)) names.add(name);
  for (const name of names) if (name !== 'rowkey') await link(name);
  for (const name of ['tsc', 'vite', 'vitest']) await link(join('.bin', name));
  const command = join(rowkey, 'local', 'commands', 'rowkey.js');
  await chmod(command, 0o755);
  await symlink(command, join(folder, 'node_modules', '.bin', 'rowkey'));
}
async function packagesOf(manifestFolder: string): Promise<string[]> {
  const { dependencies, devDependencies } = JSON.parse(await readFile(join(manifestFolder, 'package.json'), 'utf8'));
  return Object.keys({ ...dependencies, ...devDependencies });
}
async function link(name: string): Promise<void> {
  const path = join(folder, 'node_modules', name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(join(ROOT, 'node_modules', name), path, 'junction');
}

const inApp = (app: string, more: Record<string, string> = {}) => ({
  cwd: join(folder, app),
  env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1', ...more },
});
/** Runs a command of npm in the folder of an app, as its developer does. */
const npm = (app: string, words: string, more?: Record<string, string>) =>
  run('npm', words.split(' '), inApp(app, more));

/** Starts an app as its developer does, and returns its address. */
async function startApp(app: string, words: string): Promise<string> {
  const child = spawn('npm', ['start', '--', ...words.split(' ')], { ...inApp(app), detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  ends.push(async () => {
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    await vi.waitFor(() => expect(output).toContain('Stopped.'), { timeout: PATIENCE_MS });
  });
  await vi.waitFor(() => expect(output).toContain('Ctrl-C stops'), { timeout: PATIENCE_MS });
  return /(http:\S+)\/api/.exec(output)?.[1] ?? expect.fail(output);
}

const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
/** Serves the built page of an app. */
async function servePage(app: string) {
  const server = createServer(async (request, response) => {
    const name = new URL(request.url ?? '', 'http://page').pathname.slice(1) || 'index.html';
    const content = await readFile(join(folder, app, 'page', 'dist', name)).catch(() => undefined);
    const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain';
    response.writeHead(content ? 200 : 404, { 'content-type': `${type}; charset=utf-8` }).end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each(PAGE_NAMES)('the commands of the app %s succeed as it is created', { tags }, async (page) => {
  expect(await readdir(join(folder, page))).toContain('.gitignore');
  await npm(page, 'run types');
  expect((await npm(page, 'test')).stdout).toMatch(/^ +Tests +5 passed \(5\)$/m);
  expect((await npm(page, 'run check')).stdout).toContain('Nothing is wrong: 2 entities');
  expect((await npm(page, 'run infra -- --check')).stdout).toContain('infra is up to date.');
  expect((await npm(page, 'run package')).stdout).toMatch(/out has \d+ files/);
});

test('the app becomes that of the tutorial, whose commands succeed', { tags }, async ({ skip }) => {
  const files = [
    ...(await readFile(join(ROOT, 'docs', 'tutorial.md'), 'utf8')).matchAll(/^```(?:ts|html)\n(.*?)^```$/gms),
  ];
  if (files.length === 0) skip('The tutorial has no files.');
  const app = join(folder, 'tutorial');
  await cp(join(folder, 'plain'), app, { recursive: true });
  for (const name of ['session.ts', 'style.css']) await rm(join(app, 'page', name));
  const names = ['model.ts', 'operations.ts', 'model.test.ts', 'page/index.html', 'page/page.ts'];
  expect(files).toHaveLength(names.length);
  for (const [index, name] of names.entries()) await writeFile(join(app, name), files[index]?.[1] ?? '');
  await npm('tutorial', 'run types');
  expect((await npm('tutorial', 'test')).stdout).toMatch(/^ +Tests +1 passed \(1\)$/m);
  expect((await npm('tutorial', 'run check')).stdout).toContain('Nothing is wrong');
  await npm('tutorial', 'run infra');
  await npm('tutorial', 'run build');
  expect(await readdir(join(app, 'page', 'dist'))).toContain('index.html');
});

/** Opens a page in a session of its own, and signs in as this user. */
async function open(address: string, { email, width = 375 }: { email?: string; width?: number } = {}) {
  if (typeof browser === 'string') throw new Error(browser);
  const context = await browser.newContext({ viewport: { width, height: 812 }, locale: 'en-GB' });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(address);
  if (email !== undefined) {
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('Your email address').fill(email);
    await page.getByRole('button', { name: 'Create an account' }).click();
    await page.waitForURL(address);
    await page.getByRole('heading', { name: 'Projects' }).waitFor();
  }
  return { page, complaints };
}
const textsOf = (page: Page, selector: string) => page.locator(selector).allInnerTexts();
const isWithinWidth = (page: Page) => page.evaluate('document.documentElement.scrollWidth <= innerWidth');

test.for(PAGES)('people note their hours on the page %s, and customers see them', { tags }, async (kind, { skip }) => {
  if (typeof browser === 'string') skip(browser);
  const address = `${origins[kind]}/`;
  const ann = await open(address, { email: `ann-${kind}@contoso.com` });
  for (const name of ['Website', 'App for the bakery']) {
    await ann.page.getByPlaceholder('New project').fill(name);
    await ann.page.getByRole('button', { name: 'Create' }).click();
    await ann.page.locator('.card', { hasText: name }).waitFor();
  }
  // In the order of their names.
  expect(await textsOf(ann.page, '.card .name')).toEqual(['App for the bakery', 'Website']);
  const card = ann.page.locator('.card', { hasText: 'Website' });
  await card.locator('summary').click();
  for (const [hours, note, day] of [
    ['2', 'Design', '2026-11-19'],
    ['0.25', 'A call', '2026-11-20'],
  ] as const) {
    await card.getByLabel('Day').fill(day);
    await card.getByLabel('Hours').fill(hours);
    await card.getByLabel('Note').fill(note);
    await card.getByRole('button', { name: 'Add' }).click();
    await card.locator('li', { hasText: note }).waitFor();
  }
  expect(await textsOf(ann.page, '.card:has-text("Website") li .note')).toEqual(['A call', 'Design']);
  await expect.poll(() => textsOf(ann.page, '.card summary .hours')).toEqual(['0 h', '2.25 h']);
  expect(await isWithinWidth(ann.page)).toBe(true);
  expect(ann.complaints).toEqual([]);

  // A customer has the link, and no account.
  const link = await card.getByRole('link', { name: 'Report for the customer' }).getAttribute('href');
  const customer = await open(link ?? '', { width: 1280 });
  await customer.page.getByRole('heading', { name: 'Website' }).waitFor();
  await customer.page.getByText('2.25 h in total').waitFor();
  expect(await textsOf(customer.page, 'li')).toEqual([
    expect.stringMatching(/^Fri,? 20 Nov\s+A call\s+0\.25 h$/),
    expect.stringMatching(/^Thu,? 19 Nov\s+Design\s+2 h$/),
  ]);
  expect(customer.complaints).toEqual([]);

  // Another user sees nothing of it, and may use the same name.
  const bob = await open(address, { email: `bob-${kind}@contoso.com`, width: 1280 });
  await bob.page.getByPlaceholder('New project').fill('Website');
  await bob.page.getByRole('button', { name: 'Create' }).click();
  await expect.poll(() => textsOf(bob.page, '.card summary .hours')).toEqual(['0 h']);
  expect(await textsOf(bob.page, '.card .name')).toEqual(['Website']);
  expect(await textsOf(bob.page, '.card li')).toEqual([]);
  expect(bob.complaints).toEqual([]);

  // What the model rejects is said, and nothing is changed.
  await ann.page.getByPlaceholder('New project').fill('Website');
  await ann.page.getByRole('button', { name: 'Create' }).click();
  await ann.page.getByText('"name" is taken').waitFor();
  await card.getByRole('button', { name: 'Delete project' }).click();
  await ann.page.getByText('cannot be deleted: entries refer to it').waitFor();
  expect(await textsOf(ann.page, '.card .name')).toEqual(['App for the bakery', 'Website']);

  for (const left of [1, 0]) {
    await card.getByRole('button', { name: 'Delete the entry' }).first().click();
    await expect.poll(() => card.locator('li').count()).toBe(left);
  }
  await card.getByRole('button', { name: 'Delete project' }).click();
  await expect.poll(() => textsOf(ann.page, '.card .name')).toEqual(['App for the bakery']);
  ann.page.on('dialog', (dialog) => dialog.accept());
  await ann.page.getByRole('button', { name: 'Delete my data' }).click();
  await ann.page.getByText('Know where your hours went').waitFor();
  const again = await open(address, { email: `ann-${kind}@contoso.com` });
  expect(await textsOf(again.page, '.card')).toEqual([]);
});

test('its developer exports the rows of all users', { tags }, async ({ skip }) => {
  if (typeof browser === 'string') skip(browser);
  const { stdout } = await run('npx', ['rowkey', 'export', 'projects', 'projects.ndjson'], inApp('plain'));
  expect(stdout).toMatch(/^Exported [1-9]\d* projects to projects\.ndjson\.$/m);
});
