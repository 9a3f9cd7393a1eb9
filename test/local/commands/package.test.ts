import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ignore from 'ignore';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PackagedFile, packageApp } from '../../../local/commands/package.ts';
import { measureLoad } from '../../../local/package/measure-load.ts';

/** Published by Microsoft: what `UseDevelopmentStorage=true` stands for. */
const EMULATOR_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

let folder: string;
let files: readonly PackagedFile[];
beforeAll(async () => {
  // Outside the project, where nothing that is installed here can be found.
  folder = await mkdtemp(join(tmpdir(), 'rowkey-package-'));
  files = await packageApp(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('the package is the app in one file, and what tells the host of it', () => {
  expect(files.map(({ path }) => path).toSorted()).toEqual(['dist/app.js', 'host.json', 'package.json']);
  expect(JSON.parse(read('package.json'))).toMatchObject({ main: 'dist/app.js', type: 'module' });
});

test('with nothing installed it registers every function that the sources register', async () => {
  const sources = globSync('functions/*.ts', { cwd: ROOT }).map((file) => join(ROOT, file));
  const [packaged, unbundled] = await Promise.all([
    measureLoad([join(folder, 'dist', 'app.js')]),
    measureLoad(sources),
  ]);
  expect(packaged.functions.length).toBeGreaterThan(sources.length);
  expect(packaged.functions).toEqual(unbundled.functions);
});

test('nothing of the product is bundled but functions/ and lib/, and nothing that only develops it', () => {
  const { sources } = JSON.parse(read('dist/app.js.map')) as { sources: string[] };
  const own = sources.filter((source) => !source.includes('node_modules/'));
  expect(own).toContain('../lib/rowkey.ts');
  expect(own.filter((source) => !/^\.\.\/(functions|lib)\//.test(source))).toEqual([]);
  const manifest: Record<string, Record<string, string>> = JSON.parse(read('package.json'));
  // Peers of the library are installed as development dependencies here.
  const developing = Object.keys(manifest.devDependencies ?? {})
    .filter((name) => !(name in (manifest.peerDependencies ?? {})))
    .map((name) => `/node_modules/${name}/`);
  expect(sources.filter((source) => developing.some((name) => source.includes(name)))).toEqual([]);
});

test('it holds no key, but for the published one of the emulators that the SDKs hold, and no token', () => {
  for (const { path } of files) {
    const text = readFileSync(join(folder, path), 'utf8');
    const keys = text.match(/(?<![\w+/])[A-Za-z0-9+/]{86}==/g) ?? [];
    expect(new Set([...keys, EMULATOR_KEY]), path).toEqual(new Set([EMULATOR_KEY]));
    expect(text, path).not.toMatch(/-----BEGIN [A-Z ]*PRIVATE KEY-----\s*[A-Za-z0-9+/]{16}|\beyJ[\w-]{16,}\.eyJ/);
  }
});

test('azd takes it as it is: it refuses remoteBuild: false with a .funcignore that leaves out node_modules', () => {
  expect(read('azure.yaml')).toMatch(/^ {4}remoteBuild: false$/m);
  const rules = ignore().add(read('.funcignore'));
  expect(rules.ignores('node_modules/')).toBe(false);
  expect(rules.ignores('node_modules/zod/package.json')).toBe(true);
});
