import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Finding } from '../../lib/define/finding.ts';
import { PROBLEMS } from '../../lib/http/problem.ts';
import { TIMERS } from '../../lib/register-functions.ts';

const pages = globSync(['*.md', 'docs/*.md']);

/** Returns the anchors that GitHub gives the headings of a page. */
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

  test('names npm scripts and source files that exist', () => {
    const text = readFileSync(page, 'utf8');
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
    const named = [...text.matchAll(/npm run (?:-s )?([a-z][\w:-]*)/g)].map(([, script = '']) => script);
    expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
    const sources = /(?<![\w/.])(?:lib|local|test|infra)\/[\w/.-]+\.(?:ts|mjs|json|bicep|bicepparam)\b/g;
    const files = [...text.matchAll(sources)].map(([file]) => file).filter((file) => !file.endsWith('.test.ts'));
    // A snippet whose first line names a file shows a file to create.
    expect(files.filter((file) => !existsSync(file) && !text.includes(`\`\`\`ts\n// ${file}\n`))).toEqual([]);
  });

  test('links to headings that exist', () => {
    const anchored = links.filter(
      ({ anchor, file }) => anchor !== undefined && file.endsWith('.md') && existsSync(file),
    );
    const missing = anchored.filter(({ anchor, file }) => !anchorsOf(file).includes(anchor ?? ''));
    expect(missing.map(({ file, anchor }) => `${file}#${anchor}`)).toEqual([]);
  });
});

test('docs/README.md leads to every page', () => {
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

/** The first cells of the tables under a heading. */
function firstCells(page: string, heading: string): string[] {
  const [, section = ''] = readFileSync(page, 'utf8').split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^\| `?([^|`]+?)`?(?:, `[^|]*)? \|/gm)].map(([, cell = '']) => cell);
}

test('docs/operating.md describes every timer', () => {
  expect(firstCells('docs/operating.md', 'Timers')).toEqual(expect.arrayContaining(Object.keys(TIMERS)));
});

test('docs/operating.md describes every finding of the consistency check', () => {
  expect(firstCells('docs/operating.md', 'Check consistency')).toEqual(
    expect.arrayContaining([...Finding.shape.kind.options]),
  );
});

test('docs/infrastructure.md names every alert and every saved query', () => {
  const text = readFileSync('docs/infrastructure.md', 'utf8');
  const titles = ['alerts', 'queries'].flatMap((module) =>
    [...readFileSync(`infra/modules/${module}.bicep`, 'utf8').matchAll(/^ +(?:title|question): '(.+)'$/gm)].map(
      ([, title = '']) => title,
    ),
  );
  expect(titles.length).toBeGreaterThan(10);
  expect(titles.filter((title) => !text.includes(title))).toEqual([]);
});

test('docs/architecture.md names functions that exist', () => {
  const named = [...readFileSync('docs/architecture.md', 'utf8').matchAll(/`([\w/.-]+\.ts):(\w+)`/g)];
  expect(named.length).toBeGreaterThan(10);
  const missing = named.filter(([, file = '', name]) => {
    const source = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return !new RegExp(`(function|const) ${name}\\b`).test(source);
  });
  expect(missing.map(([text]) => text)).toEqual([]);
});

test('docs/use-as-a-package.md shows the app that the tests install the package in', () => {
  expect(readFileSync('docs/use-as-a-package.md', 'utf8')).toContain(
    `\`\`\`ts\n${readFileSync('test/adopter/app.ts', 'utf8')}\`\`\`\n`,
  );
});
