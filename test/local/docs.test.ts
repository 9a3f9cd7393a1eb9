import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const pages = ['README.md', ...globSync('docs/*.md')];

test.each(pages)('%s links to files that exist', (page) => {
  const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => link);
  const files = links.filter((link) => !/^\w+:/.test(link)).map((link) => join(dirname(page), link));
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});

test('docs/security.md names tests that exist', () => {
  const named = [...readFileSync('docs/security.md', 'utf8').matchAll(/`([\w/-]+\.test\.ts)`/g)].map(
    ([, file]) => file,
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(`test/${file}`))).toEqual([]);
});
