import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const BUILT = new URL('../../dist/console/', import.meta.url);
const MOST_BYTES = 250_000;
/** Of what the first page loads: its script and its styles. */
const MOST_BYTES_AT_START = 120_000;

const sizeOf = async (name: string) => gzipSync(await readFile(new URL(name, BUILT))).length;
const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);

test('the console has at most 250 KB, and its first page less than half of that', async () => {
  const index = await readFile(new URL('index.html', BUILT), 'utf8');
  const assets = (await readdir(new URL('assets/', BUILT))).filter((name) => /\.(js|css)$/.test(name));
  for (const name of assets) expect(name).toMatch(/-[\w-]{8}\.(js|css)$/);
  expect(sum(await Promise.all(assets.map((name) => sizeOf(`assets/${name}`))))).toBeLessThan(MOST_BYTES);
  const first = assets.filter((name) => index.includes(`assets/${name}`));
  expect(first.length).toBeGreaterThanOrEqual(2);
  expect(sum(await Promise.all(first.map((name) => sizeOf(`assets/${name}`))))).toBeLessThan(MOST_BYTES_AT_START);
});

test('the bundle that the tests use and measure is that of production', { tags: ['slow'] }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-console-'));
  try {
    const [module, out] = ['../../local/package/build-console.ts', folder];
    const code = `const { buildConsole } = await import(${JSON.stringify(import.meta.resolve(module))}); await buildConsole(${JSON.stringify(out)});`;
    const env = { ...process.env, NODE_ENV: 'production' };
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { env });
    // The names in it have the hashes of the scripts.
    const [here, production] = [new URL('index.html', BUILT), join(folder, 'index.html')];
    expect(await readFile(here, 'utf8')).toBe(await readFile(production, 'utf8'));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the page of the console has no inline script and no inline style', async () => {
  const index = await readFile(new URL('index.html', BUILT), 'utf8');
  expect(index).not.toMatch(/<style|\sstyle=|\son\w+=/);
  for (const [, attributes = '', content] of index.matchAll(/<script([^>]*)>(.*?)<\/script>/gs))
    expect([content, attributes]).toEqual(['', expect.stringContaining(' src="/console/assets/')]);
});
