import { readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildCreate } from '../../../local/commands/build-create.ts';
import { ask } from '../../../local/create/ask.ts';
import { createApp, type Page } from '../../../local/create/create-app.ts';

/** The initializer. That its apps work is in test/scenarios/creating-an-app.test.ts. */

let folder: string;
let template: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-create-'));
  await buildCreate(join(folder, 'built'));
  template = join(folder, 'built', 'template');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const create = (name: string, page: Page) => createApp({ template, parent: folder, name, page });

/** The contents of the files of a folder, by path. */
async function contentsOf(name: string): Promise<Record<string, string>> {
  const found = await readdir(join(folder, name), { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const contents = await Promise.all(
    files.map(async (file) => [file.slice(folder.length + 1), await readFile(file, 'utf8')]),
  );
  return Object.fromEntries(contents);
}

const API = [
  ...['.gitignore', 'README.md', 'app.ts', 'host.json', 'model.test.ts', 'model.ts', 'operations.ts'],
  ...['package.json', 'tsconfig.json', 'azure.yaml', '.github/workflows/deploy.yml'],
];
/** The template for Azure, without what is for the package alone. */
const INFRA = readdirSync('infra', { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.parentPath.endsWith('/app'))
  .map((entry) => join(entry.parentPath, entry.name));
const PAGE = ['index.html', 'session.ts', 'style.css', 'vite.config.ts'];

test.each<[Page, readonly string[]]>([
  ['none', []],
  ['plain', [...PAGE, 'page.ts']],
  ['tanstack', [...PAGE, 'entry-list.tsx', 'page.tsx', 'projects.tsx', 'report.tsx']],
])('an app with the page %s has these files, its name and no other one', async (page, files) => {
  const name = `app-${page}`;
  const written = await create(name, page);
  const contents = await contentsOf(name);
  const expected = [...API, ...INFRA, ...files.map((file) => `page/${file}`)].map((file) => `${name}/${file}`);
  expect(Object.keys(contents).toSorted()).toEqual(expected.toSorted());
  expect(written.map((file) => `${name}/${file}`).toSorted()).toEqual(expected.toSorted());
  expect(JSON.parse(contents[`${name}/package.json`] ?? '').name).toBe(name);
  expect(contents[`${name}/README.md`]).toMatch(new RegExp(`^# ${name}\n`));
  expect(Object.values(contents).join('\n')).not.toContain('rowkey-app');
  if (page !== 'none') expect(contents[`${name}/page/index.html`]).toContain(`<title>${name}</title>`);
  expect(contents[`${name}/azure.yaml`]).toMatch(new RegExp(`^name: ${name}$`, 'm'));
  const { tables } = JSON.parse(contents[`${name}/infra/model.json`] ?? '');
  expect(tables).toEqual(expect.arrayContaining(['hours', 'projects', 'projectsbycode']));
  for (const file of ['azure.yaml', '.github/workflows/deploy.yml'])
    expect(contents[`${name}/${file}`]?.includes('npm run build'), file).toBe(page !== 'none');
});

test('an app has the settings of the host and the versions of this repository', async () => {
  const manifest = JSON.parse(await readFile(join(template, 'tanstack', 'package.json'), 'utf8'));
  const { version, devDependencies, overrides } = JSON.parse(await readFile('package.json', 'utf8'));
  const { rowkey, ...others } = { ...manifest.dependencies, ...manifest.devDependencies };
  expect(rowkey).toBe(`^${version}`);
  expect(Object.keys(others).length).toBeGreaterThan(10);
  for (const [name, range] of Object.entries(others)) expect(range, name).toBe(`^${devDependencies[name]}`);
  expect(manifest.overrides).toEqual(overrides);
  const hosts = await Promise.all(
    ['host.json', join(template, 'none', 'host.json')].map((file) => readFile(file, 'utf8')),
  );
  expect(hosts[1]).toBe(hosts[0]);
});

test('only an app with a page allows its origin, and has the commands and packages of a page', async () => {
  const [none, plain, tanstack] = await Promise.all(
    ['none', 'plain', 'tanstack'].map(async (page) =>
      JSON.parse(await readFile(join(template, page, 'package.json'), 'utf8')),
    ),
  );
  const page = { start: 'rowkey dev --cors http://localhost:5173', page: 'vite page', build: 'vite build page' };
  expect(plain.scripts).toEqual({ ...none.scripts, ...page });
  expect(none.scripts).toMatchObject({ start: 'rowkey dev', test: 'vitest run', types: 'tsc --noEmit' });
  expect(tanstack.scripts).toEqual(plain.scripts);
  expect(
    [none, plain, tanstack].map(({ devDependencies: { vite, react } }) => [Boolean(vite), Boolean(react)]),
  ).toEqual([
    [false, false],
    [true, false],
    [true, true],
  ]);
});

test.each(['', 'a', 'Hours', 'my_app', '1st', '-hours', 'hours-', '../hours', 'a/b', '.', 'ä1', 'a'.repeat(41)])(
  'rejects the name "%s", and writes nothing',
  async (name) => {
    const before = await contentsOf('.');
    await expect(create(name, 'none')).rejects.toThrow(
      `The name "${name}" must be 2 to 40 lower-case letters, digits and hyphens, which begin with a letter and do not end with a hyphen.`,
    );
    expect(await contentsOf('.')).toEqual(before);
  },
);

test.each(['rowkey', 'zod', 'vitest'])('rejects the name of the package %s', async (name) => {
  await expect(create(name, 'none')).rejects.toThrow(`The name "${name}" is that of a package which the app installs`);
  expect(await readdir(folder)).not.toContain(name);
});

test('writes into an empty folder, and never into one that has files', async () => {
  await mkdir(join(folder, 'prepared'));
  await create('prepared', 'none');
  await writeFile(join(folder, 'prepared', 'model.ts'), 'changed');
  const before = await contentsOf('prepared');
  await expect(create('prepared', 'plain')).rejects.toThrow(
    `The folder ${join(folder, 'prepared')} is not empty: choose another name. Nothing was written.`,
  );
  expect(await contentsOf('prepared')).toEqual(before);
  await writeFile(join(folder, 'taken'), 'a file');
  await expect(create('taken', 'none')).rejects.toThrow(`${join(folder, 'taken')} is a file: choose another name.`);
});

test('replaces no file that appears while it writes', async () => {
  const both = await Promise.allSettled([create('same', 'none'), create('same', 'plain')]);
  expect(both.map(({ status }) => status)).toContain('rejected');
});

/** Presses these keys, one after another as they are read, then Ctrl-C, and returns the answers and what was shown. */
async function answer(given: Parameters<typeof ask>[0], keys: readonly string[]) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = '';
  let left = [...keys];
  output.on('data', (chunk) => {
    shown += chunk;
    const [key = CTRL_C, ...others] = left;
    left = others;
    setImmediate(() => input.write(key));
  });
  return { answers: await ask(given, { input, output }), shown };
}
const CTRL_C = '\u0003';
const ENTER = '\r';
const DOWN = '\u001b[B';

test('asks for the name and the page', async () => {
  const { answers, shown } = await answer({}, ['-2', ENTER, DOWN, ENTER]);
  expect(answers).toEqual({ name: 'hours-2', page: 'tanstack' });
  expect(shown).toContain('React with TanStack Query');
});

test('asks only for what the command line does not say', async () => {
  expect((await answer({ name: 'fleet' }, [ENTER])).answers).toEqual({ name: 'fleet', page: 'plain' });
  expect((await answer({ page: 'none' }, [ENTER])).answers).toEqual({ name: 'hours', page: 'none' });
  expect(await answer({ name: 'fleet', page: 'none' }, [])).toEqual({
    answers: { name: 'fleet', page: 'none' },
    shown: '',
  });
});

test('says what is wrong with a name, and asks again', async () => {
  const { answers, shown } = await answer({ page: 'none' }, ['!', ENTER, '\u007f', ENTER]);
  expect(shown).toContain('The name "hours!" must be');
  expect(answers).toEqual({ name: 'hours', page: 'none' });
});

test('writes nothing if the user ends the questions', async () => {
  const { answers, shown } = await answer({}, []);
  expect([answers, shown]).toEqual([undefined, expect.stringContaining('Nothing was written.')]);
});
