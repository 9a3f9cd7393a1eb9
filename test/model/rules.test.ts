import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { checkTypes } from '../check-types.ts';
import { BEGIN, END, PAGE, RULES, removeRule, tableOfRules } from './rules.ts';

const page = readFileSync(PAGE, 'utf8');

/** The first cells of the table below a heading. */
function rowsBelow(heading: string): string[] {
  const [, below = ''] = page.split(`\n### ${heading}\n`);
  const [section = ''] = below.split('\n### ');
  const rows = section.split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(1).map((line) => line.split(' | ')[0]?.slice(2) ?? '');
}

test('every row of both tables can be taken out of the code, and nothing else', () => {
  const rows = [...rowsBelow('The order of the steps'), ...rowsBelow('Time')];
  expect(rows.length).toBeGreaterThan(10);
  expect([...new Set(RULES.map(({ row }) => row))]).toEqual(rows);
});

test.each(RULES)('$without: the code still has the rule, and the test exists', (rule) => {
  const source = readFileSync(rule.file, 'utf8');
  expect(removeRule(rule, source)).not.toBe(source);
  const [file, title] = rule.test;
  const titles = [...readFileSync(file, 'utf8').matchAll(/'([^'\n]+)',\s*async/g)].map(([, text = '']) => text);
  const isTitle = (text: string) => text !== '%s' && new RegExp(`^${text.replaceAll('%s', '.+')}$`).test(title);
  expect(titles.filter(isTitle)).toHaveLength(1);
});

// Otherwise a rule could fail its test for another reason than its absence, or not run at all because an error is handled.
test('the code without each rule has no type error', async () => {
  const folder = mkdtempSync('node_modules/.rules-');
  try {
    for (const [index, rule] of RULES.entries()) {
      const path = join(folder, dirname(rule.file), `${index}-${basename(rule.file)}`);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, removeRule(rule, readFileSync(rule.file, 'utf8')));
    }
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions: { rootDirs: ['.', '../..'] },
      include: ['lib'],
      exclude: [],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    expect(await checkTypes(folder)).toBe('');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a rule cannot be taken out of code that has changed', () => {
  const [rule] = RULES;
  expect(() => rule && removeRule(rule, 'const changed = true;')).toThrow('0 places instead of one');
});

test('the table of rules is that of the last run', () => {
  const [, rest = ''] = page.split(BEGIN);
  expect(rest.split(END)[0]?.trim()).toBe(tableOfRules());
});
