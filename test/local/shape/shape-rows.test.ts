import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findFolderCircles } from '../../../local/shape/folder-circles.ts';
import { countImplementers, membersOf } from '../../../local/shape/interfaces.ts';
import { findOptionPlaces } from '../../../local/shape/option-places.ts';
import { countSources } from '../../../local/shape/shape-rows.ts';
import { parseSource } from '../../../local/shape/source-files.ts';

test('keeps each count of the sources within a bound that it has reached', { tags: ['slow'] }, () => {
  const page = readFileSync('docs/internals/architecture.md', 'utf8');
  // A count above its bound is bold. Counts without a bound have no number after them.
  const reached = [...page.matchAll(/^\| (.+) \| \d[\d,]*(?: \(.+\))? \| \d[\d,]* \|/gm)].map(([, what]) => what);
  expect(reached).toContain('Type parameters of `defineEntity`');
  const passed = countSources().filter(
    ({ what, count, bound = Number.POSITIVE_INFINITY }) => reached.includes(what) && count > bound,
  );
  expect(passed).toEqual([]);
});

test('finds folders that import each other through others and by types', () => {
  const circle = [
    parseSource('lib/a/one.ts', "import type { Two } from '../b/two.ts';"),
    parseSource('lib/b/two.ts', "export * from '../c/three.ts';"),
    parseSource('lib/c/three.ts', "const load = () => import('../a/one.ts');"),
  ];
  const others = [parseSource('lib/d/four.ts', "import '../a/one.ts'; import './five.ts'; import 'node:fs';")];
  expect(findFolderCircles([...circle, ...others])).toEqual([['lib/a', 'lib/b', 'lib/c']]);
  expect(findFolderCircles([...circle.slice(1), ...others])).toEqual([]);
});

test('counts the members of an interface and the objects that have each', () => {
  const files = [
    parseSource('a.ts', 'interface Feature<Entity> extends Named { plan?(): void; readonly timer?: Entity }'),
    parseSource('b.ts', 'interface Named { name: string }'),
    parseSource('c.ts', 'const expiry: Feature<Entity> = { name, plan() {} }; const other = { timer };'),
    parseSource('d.ts', "export default { name: '' } satisfies Feature<Entity>;"),
  ];
  expect(membersOf(files, 'Feature')).toEqual(new Set(['plan', 'timer', 'name']));
  expect(membersOf(files, 'Other')).toBeUndefined();
  const ofOwnFile = parseSource('e.ts', 'interface Named { title: string } interface Model extends Named {}');
  expect(membersOf([...files, ofOwnFile], 'Model')).toEqual(new Set(['title']));
  expect(Object.fromEntries(countImplementers(files, 'Feature'))).toEqual({ name: 2, plan: 1 });
});

test('finds the lists that state an option, and no use of the option', () => {
  const text = `interface Options { table: string; expiry?: number; lookup?: string; maxAge?: number }
    const OPTIONS = { table: 1, 'expiry': 2, lookup: 3 };
    type Rest = Omit<Options, 'table' | 'expiry' | 'lookup'>;
    const NAMES = ['table', 'lookup', 'maxAge'];
    export const feature = { option: 'expiry' };
    const { table, expiry, lookup } = entity;
    const address = { table, row };
    defineEntity('cars', { table: 'cars', expiry: 3, lookup: 'all' });`;
  const options = new Set(['table', 'expiry', 'lookup', 'maxAge']);
  const places = findOptionPlaces([parseSource('a.ts', text)], options);
  expect(Object.fromEntries([...places].map(([option, found]) => [option, [...found]]))).toEqual({
    table: ['a.ts:1', 'a.ts:2', 'a.ts:3', 'a.ts:4'],
    expiry: ['a.ts:1', 'a.ts:2', 'a.ts:3', 'a.ts:5'],
    lookup: ['a.ts:1', 'a.ts:2', 'a.ts:3', 'a.ts:4'],
    maxAge: ['a.ts:1', 'a.ts:4'],
  });
});
