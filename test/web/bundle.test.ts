import { readdir, readFile } from 'node:fs/promises';
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

test('the page of the console has no inline script and no inline style', async () => {
  const index = await readFile(new URL('index.html', BUILT), 'utf8');
  expect(index).not.toMatch(/<style|\sstyle=|\son\w+=/);
  for (const [, attributes = '', content] of index.matchAll(/<script([^>]*)>(.*?)<\/script>/gs))
    expect([content, attributes]).toEqual(['', expect.stringContaining(' src="/console/assets/')]);
});
