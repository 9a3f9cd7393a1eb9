import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROBLEMS } from '../../lib/http/problem.ts';

const pages = globSync(['*.md', 'docs/*.md']);

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^ *```.*?^ *```/gms, '');
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe.each(pages)('%s', (page) => {
  const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)]
    .map(([, link = '', anchor]) => ({ link, anchor, file: link === '' ? page : join(dirname(page), link) }))
    .filter(({ link }) => !/^\w+:/.test(link));

  test('links to files that exist', () => {
    expect(links.map(({ file }) => file).filter((file) => !existsSync(file))).toEqual([]);
  });

  test('links to headings that exist', () => {
    const anchored = links.filter(
      ({ anchor, file }) => anchor !== undefined && file.endsWith('.md') && existsSync(file),
    );
    const missing = anchored.filter(({ anchor, file }) => !anchorsOf(file).includes(anchor ?? ''));
    expect(missing.map(({ file, anchor }) => `${file}#${anchor}`)).toEqual([]);
  });
});

test('every page is reached from docs/README.md', () => {
  const index = readFileSync('docs/README.md', 'utf8');
  expect(
    globSync('*.md', { cwd: 'docs' }).filter((page) => page !== 'README.md' && !index.includes(`](${page})`)),
  ).toEqual([]);
});

test('docs/problems.md has a heading and the status of each error code', () => {
  const rows = readFileSync('docs/problems.md', 'utf8').matchAll(/^\| \[`([a-z-]+)`\]\(#\1\) \| (\d+) \|/gm);
  const documented = Object.fromEntries([...rows].map(([, code, status]) => [code, Number(status)]));
  expect(documented).toEqual(Object.fromEntries(Object.entries(PROBLEMS).map(([code, { status }]) => [code, status])));
  expect(anchorsOf('docs/problems.md')).toEqual(expect.arrayContaining(Object.keys(PROBLEMS)));
});

test('docs/security.md names tests that exist', () => {
  const named = [...readFileSync('docs/security.md', 'utf8').matchAll(/`([\w/-]+\.test\.ts)`/g)].map(
    ([, file]) => file,
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(`test/${file}`))).toEqual([]);
});
