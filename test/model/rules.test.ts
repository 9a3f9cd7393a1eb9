import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { checkTypes } from '../check-types.ts';
import { isLeftToAll } from '../left-to-all.ts';
import { PROMISES } from '../mutation/promises.ts';
import { BEGIN, type Cut, END, PAGE, RULES, removeRule, tableOfRules, toPattern } from './rules.ts';

const page = readFileSync(PAGE, 'utf8');

/** The texts in a file that are the title of a test. `describe > title` tells apart the tests that have one title. */
function findTitles(file: string, title: string): string[] {
  const texts = [...readFileSync(file, 'utf8').matchAll(/(['`])((?:(?!\1).)+)\1,/g)].map(([, , text = '']) => text);
  return texts.filter((text) => text !== '%s' && new RegExp(`(^| > )${toPattern(text)}$`).test(title));
}

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

const cuts: readonly Cut[] = [...RULES, ...PROMISES];

test.each(cuts)('$without: the code still has it, and the test exists', (cut) => {
  const source = readFileSync(cut.file, 'utf8');
  expect(removeRule(cut, source)).not.toBe(source);
  const [file, title] = cut.test;
  expect(findTitles(file, title)).toHaveLength(1);
});

test('npm test runs the test of each, but for those that hold nothing besides a recommendation', () => {
  const ofRecommendations = new Set(PROMISES.filter(({ recommendations }) => recommendations));
  const left = cuts.filter((cut) => {
    if (ofRecommendations.has(cut)) return false;
    const [file, title] = cut.test;
    const text = readFileSync(file, 'utf8');
    const name = `${findTitles(file, title)[0]}',`;
    const [, after = ''] = text.split(name);
    const slowGroups = [...text.matchAll(/^describe[^\n]*'slow'.*?^\}\);/gms)];
    const isInSlowGroup = slowGroups.some(([group]) => group.includes(name));
    return isLeftToAll(file) || isInSlowGroup || /^\s*\{[^}]*'slow'/.test(after);
  });
  expect(left.map(({ test: [file, title] }) => `${file}: ${title}`)).toEqual([]);
});

test('each promise is in the file of its room', async () => {
  const roomOf = ({ file }: Cut) =>
    file.endsWith('.ts') ? /^(?:lib\/)?(engine\/[\w-]+(?=\/)|\w+)/.exec(file)?.[1]?.replace('/', '-') : 'settings';
  const rooms = readdirSync('test/mutation/promises').map((file) => basename(file, '.ts'));
  for (const room of rooms) {
    const [promises]: Cut[][] = Object.values(await import(`../mutation/promises/${room}.ts`));
    expect(promises?.map(roomOf)).toEqual(promises?.map(() => room));
    expect(PROMISES).toEqual(expect.arrayContaining(promises ?? []));
  }
});

test('each of the cuts has a name of its own', () => {
  expect(new Set(cuts.map(({ without }) => without)).size).toBe(cuts.length);
});

// Otherwise a rule could fail its test for another reason than its absence, or not run at all because an error is handled.
test('the code without each of them has no type error', { tags: ['slow'] }, async () => {
  const folder = mkdtempSync('node_modules/.rules-');
  try {
    for (const [index, cut] of cuts.entries()) {
      const path = join(folder, dirname(cut.file), `${index}-${basename(cut.file)}`);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, removeRule(cut, readFileSync(cut.file, 'utf8')));
    }
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions: { rootDirs: ['.', '../..'] },
      include: ['lib', 'local', 'functions'],
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
