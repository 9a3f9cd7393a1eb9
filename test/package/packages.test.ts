import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { beforeAll, expect, inject, test } from 'vitest';
import { createApiReports } from '../../local/package/api-reports.ts';
import { type Packed, packPackages } from '../../local/package/pack-packages.ts';

/** What npm publishes, checked as a user gets it. `npm run check:package` runs this file. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Of an app that declares, stores and calls: test/adopter. Measured: 115,365. */
const MAX_INSTANTIATIONS = 120_000;
const SLOW = { tags: ['slow'] };

let packages: readonly Packed[];
beforeAll(async () => {
  packages = await packPackages();
});

/** The package that apps import. */
function library(): Packed {
  const found = packages.find(({ name }) => name === 'rowkey');
  if (!found) throw new Error('The package rowkey is not packed.');
  return found;
}

/** Runs a tool of the repository, and returns its exit code and what it prints. */
async function runTool(name: string, ...parameters: readonly string[]) {
  const options = { cwd: ROOT, env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' } };
  const ran = promisify(execFile)(process.execPath, [join('node_modules', '.bin', name), ...parameters], options);
  const { code, stdout, stderr } = await ran.then(
    (output) => ({ code: 0, ...output }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  return { code, said: stdout + stderr };
}

test('every manifest is public and names the repository, without which npm refuses a provenance', SLOW, async () => {
  const root = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  expect(root.repository.url).toMatch(/^git\+https:\/\/github\.com\/[\w-]+\/[\w-]+\.git$/);
  for (const { folder, version } of packages) {
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    expect(manifest.private).toBeUndefined();
    expect(manifest.repository.url).toBe(root.repository.url);
    expect(manifest).toMatchObject({ license: root.license, homepage: root.homepage, bugs: root.bugs });
    expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
    expect(version).toBe(root.version);
  }
});

test('publint finds nothing in the packages', SLOW, async () => {
  expect(packages.length).toBeGreaterThan(0);
  for (const { tarball } of packages) {
    const { code, said } = await runTool('publint', tarball, '--strict');
    expect([code, said]).toEqual([0, expect.stringContaining('All good!')]);
  }
});

test('every entry resolves to JavaScript and its types, in Node and in bundlers', SLOW, async () => {
  for (const { name, folder, tarball } of packages) {
    const { exports } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    if (exports === undefined) continue;
    const { code, said } = await runTool('attw', tarball, '--profile', 'esm-only');
    expect(code, said).toBe(0);
    for (const entry of Object.keys(exports)) expect(said).toContain(`"${entry.replace('.', name)}"`);
  }
});

test('the packed pages import every entry, and no other', SLOW, async () => {
  const { name, folder } = library();
  const { exports } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const pages = [join(folder, 'README.md'), ...globSync(join(folder, 'docs', '**', '*.md'))];
  const texts = await Promise.all(pages.map((page) => readFile(page, 'utf8')));
  const named = texts.flatMap((text) => [...text.matchAll(/from '(rowkey(?:\/[\w/-]+)?)'/g)].map(([, entry]) => entry));
  const entries = Object.keys(exports).map((entry) => entry.replace('.', name));
  expect([...new Set(named)].toSorted()).toEqual(entries.toSorted());
});

test('docs/reference/api has what the entries export', SLOW, async () => {
  const folder = join(ROOT, 'docs', 'reference', 'api');
  const files = (await readdir(folder)).toSorted();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const reports = await createApiReports(packages);
  const hint = 'docs/reference/api is stale: run npm run api, and commit it';
  expect(Object.keys(reports).toSorted(), hint).toEqual(files);
  for (const [index, file] of files.entries()) expect(reports[file], hint).toBe(texts[index]);
});

test('the bundles of a page and the tarballs are within their limits', SLOW, async () => {
  const { folder } = library();
  const bundles = join(ROOT, 'dist', 'bundles');
  await rm(bundles, { recursive: true, force: true });
  for (const [name, module] of Object.entries({ client: 'client/index.js', 'sign-in': 'client/sign-in.js' })) {
    const bundle = await rolldown({ input: { entry: join(folder, 'lib', module) }, platform: 'browser' });
    const dir = join(bundles, name);
    await bundle.write({ dir, minify: true, entryFileNames: '[name].js', chunkFileNames: '[name].js' });
    await bundle.close();
  }
  const { code, said } = await runTool('size-limit');
  console.log(said);
  expect(code, said).toBe(0);
});

test('the compiler does not work harder for an app', SLOW, async () => {
  const lib = join(library().folder, 'lib');
  const config = {
    extends: join(ROOT, 'test', 'adopter', 'tsconfig.json'),
    compilerOptions: {
      skipLibCheck: true,
      typeRoots: [join(ROOT, 'node_modules', '@types')],
      paths: { rowkey: [join(lib, 'index.d.ts')], 'rowkey/*': [join(lib, '*', 'index.d.ts')] },
    },
    include: [join(ROOT, 'test', 'adopter')],
    // Reports an error on purpose.
    exclude: [join(ROOT, 'test', 'adopter', 'misspelt.ts')],
  };
  const project = join(inject('folder'), 'tsconfig.instantiations.json');
  await writeFile(project, JSON.stringify(config));
  // One checker: several repeat a part of the work, and how large a part depends on the machine.
  const { code, said } = await runTool('tsc', '--project', project, '--extendedDiagnostics', '--checkers', '1');
  expect(code, said).toBe(0);
  const count = Number(/^Instantiations: +(\d+)$/m.exec(said)?.[1]);
  expect(count).toBeGreaterThan(MAX_INSTANTIATIONS / 2);
  expect(count).toBeLessThanOrEqual(MAX_INSTANTIATIONS);
});

test('no file, export or dependency is unused', SLOW, async () => {
  expect(await runTool('knip', '--config', 'test/package/knip.ts')).toEqual({ code: 0, said: '' });
});
