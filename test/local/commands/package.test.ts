import { globSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import ignore from 'ignore';
import { beforeAll, expect, inject, test } from 'vitest';
import { type PackagedFile, packageApp } from '../../../local/commands/package.ts';
import { COMPRESSIBLE } from '../../../local/package/compress-files.ts';
import { measureLoad } from '../../../local/package/measure-load.ts';

/** The published key that `UseDevelopmentStorage=true` stands for. */
const EMULATOR_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const COMPILED = `dist/main.cjs.${process.version}-${process.platform}-${process.arch}`;
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

// Outside the project, so that the app cannot load installed packages.
const folder = await mkdtemp(join(inject('folder'), 'package-'));
let files: readonly PackagedFile[];
beforeAll(async () => {
  files = await packageApp(folder);
});

test('the package contains the app, its chunks and the files that the host needs', () => {
  const all = files.map(({ path }) => path).filter((path) => !path.startsWith('dist/chunks/'));
  const [console, others] = [true, false].map((isConsole) =>
    all.filter((path) => path.startsWith('dist/console/') === isConsole),
  );
  expect(others?.toSorted()).toEqual(['dist/app.js', 'dist/main.cjs', COMPILED, 'host.json', 'package.json']);
  expect(console).toEqual(expect.arrayContaining(['dist/console/index.html.br']));
  expect(console?.filter((path) => COMPRESSIBLE.has(extname(path)))).toEqual([]);
  expect(console?.filter((path) => path.endsWith('.map'))).toEqual([]);
  expect(JSON.parse(read('package.json'))).toMatchObject({ main: 'dist/app.js', type: 'module' });
});

test('the package lacks the compiled code on request, and registers the same functions', {
  tags: ['slow'],
}, async () => {
  const other = await mkdtemp(join(inject('folder'), 'package-'));
  const all = (await packageApp(other, { compiledCode: false })).map(({ path }) => path);
  expect(all.toSorted()).toEqual(
    files
      .map(({ path }) => path)
      .filter((path) => path !== COMPILED)
      .toSorted(),
  );
  const loads = await Promise.all([folder, other].map((each) => measureLoad([join(each, 'dist', 'app.js')])));
  expect(loads[1]?.functions).toEqual(loads[0]?.functions);
});

/** What a cold start does not need, by the folder of the package. */
const LOADED_WHEN_USED = [
  '@azure/identity',
  '@azure/msal-node',
  '@azure/monitor-opentelemetry-exporter',
  '@azure/keyvault-keys',
  'rate-limiter-flexible',
];

test('the chunks are without maps, and have what a cold start does not need', () => {
  const chunks = files.map(({ path }) => path).filter((path) => path.startsWith('dist/chunks/'));
  expect(chunks.length).toBeGreaterThan(0);
  expect(chunks.filter((path) => !path.endsWith('.cjs'))).toEqual([]);
  const { sources } = JSON.parse(read('dist/main.cjs.map')) as { sources: string[] };
  const eager = LOADED_WHEN_USED.filter((name) => sources.some((source) => source.includes(`node_modules/${name}/`)));
  expect(eager).toEqual([]);
});

test('the package registers every function of the sources without installed dependencies', {
  tags: ['slow'],
}, async () => {
  const sources = globSync('functions/*.ts', { cwd: ROOT }).map((file) => join(ROOT, file));
  const [packaged, unbundled] = await Promise.all([
    measureLoad([join(folder, 'dist', 'app.js')]),
    measureLoad(sources),
  ]);
  expect(packaged.functions.length).toBeGreaterThan(sources.length);
  expect(packaged.functions).toEqual(unbundled.functions);
});

test('the app loads neither undici nor HTTP/2 of Node before its first request', { tags: ['slow'] }, async () => {
  const { builtins } = await measureLoad([join(folder, 'dist', 'app.js')]);
  expect(builtins).toContain('http');
  expect(builtins.filter((name) => /^http2$|undici\/undici/.test(name))).toEqual([]);
});

test('V8 keeps one byte for each character of the bundle', () => {
  expect(read('dist/main.cjs')).not.toMatch(/[^\0-\x7f]/);
});

test('the package bundles only examples/, functions/, lib/ and model/, and no development dependency', () => {
  const sources = globSync('dist/{main,chunks/*}.cjs.map', { cwd: ROOT }).flatMap(
    (map) => (JSON.parse(read(map)) as { sources: string[] }).sources,
  );
  const own = sources.filter((source) => !source.includes('node_modules/'));
  expect(own).toContain('../lib/rowkey.ts');
  expect(own.filter((source) => !/^(\.\.\/)+(examples|functions|lib|model)\//.test(source))).toEqual([]);
  const manifest: Record<string, Record<string, string>> = JSON.parse(read('package.json'));
  // Peer dependencies of the library are installed as development dependencies in this repository.
  const developing = Object.keys(manifest.devDependencies ?? {})
    .filter((name) => !(name in (manifest.peerDependencies ?? {})))
    .map((name) => `/node_modules/${name}/`);
  expect(sources.filter((source) => developing.some((name) => source.includes(name)))).toEqual([]);
});

test('the package contains no login page without a password', () => {
  expect(files.map(({ path }) => path).filter((path) => path.includes('login'))).toEqual([]);
  const text = read('dist/main.cjs');
  expect(text).not.toMatch(/Sign in for development|code_challenge_methods_supported/);
});

test('the package contains no token, and no key except the published emulator key of the SDKs', () => {
  for (const { path } of files) {
    const content = readFileSync(join(folder, path));
    const text = (path.endsWith('.br') ? brotliDecompressSync(content) : content).toString();
    const keys = text.match(/(?<![\w+/])[A-Za-z0-9+/]{86}==/g) ?? [];
    expect(new Set([...keys, EMULATOR_KEY]), path).toEqual(new Set([EMULATOR_KEY]));
    expect(text, path).not.toMatch(/-----BEGIN [A-Z ]*PRIVATE KEY-----\s*[A-Za-z0-9+/]{16}|\beyJ[\w-]{16,}\.eyJ/);
  }
});

test('azure.yaml and .funcignore meet the conditions of azd: remoteBuild: false needs a .funcignore that keeps node_modules', () => {
  expect(read('azure.yaml')).toMatch(/^ {4}remoteBuild: false$/m);
  const rules = ignore().add(read('.funcignore'));
  expect(rules.ignores('node_modules/')).toBe(false);
  expect(rules.ignores('node_modules/zod/package.json')).toBe(true);
});
