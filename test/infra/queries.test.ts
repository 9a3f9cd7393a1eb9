import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { all, at, children, declarations, INFRA, unquoted } from './bicep.ts';
import { readQuery } from './kusto.ts';

const rules = declarations
  .filter(({ file, name }) => file === 'modules/alerts.bicep' && name === 'rules')
  .flatMap(({ node }) =>
    children(node)
      .filter(({ type }) => type === 'array')
      .flatMap((list) => children(list)),
  )
  .map((rule) => {
    const text = (property: string) => at(rule, property)?.text ?? '';
    const dimensions = at(rule, 'dimensions');
    return {
      name: unquoted(text('name')),
      query: text('query').replace(/^'''|'''$/g, ''),
      dimensions: (dimensions ? all(dimensions, 'object') : []).map((each) => unquoted(at(each, 'name')?.text ?? '')),
    };
  });

test('a wrong query is found', () => {
  expect(readQuery('AppMetrics | where Name = 1').wrong).not.toEqual([]);
  expect(readQuery('AppMetrics | summarize last = max(TimeGenerated)').wrong).not.toEqual([]);
  expect(readQuery('AppMetrics | where Nmae == 1').wrong).not.toEqual([]);
  expect(readQuery('AppMetrics | project Name').wrong).toEqual([]);
});

describe('the query of an alert', () => {
  test('there is one for each of five', () => expect(rules.length).toBe(5));

  // They are deployed without validation, as the tables come later: a wrong one would never fire, and nobody would know.
  test.each(rules)('$name is right, and answers a number as measure and its dimensions', ({ query, dimensions }) => {
    const { wrong, columns } = readQuery(query);
    expect(wrong).toEqual([]);
    expect(columns.get('measure')).toMatch(/^(int|long|real)$/);
    for (const dimension of dimensions) expect(columns.get(dimension)).toBe('string');
  });
});

test('the alert on timers looks at every timer that there is', () => {
  const folder = join(INFRA, '../functions');
  const source = globSync('*.ts', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8'));
  const timers = source.flatMap((text) => [...text.matchAll(/app\.timer\('([\w-]+)'/g)].map(([, name]) => name));
  const { query } = rules.find(({ name }) => name === 'timer-missed') ?? { query: '' };
  const watched = [...(/datatable\([^)]*\) \[([^\]]*)\]/.exec(query)?.[1]?.matchAll(/'([\w-]+)'/g) ?? [])];
  expect(watched.map(([, name]) => name).toSorted()).toEqual(timers.toSorted());
});

describe('a saved query', () => {
  test.each(globSync('queries/*.kql', { cwd: INFRA }))('%s is right', (path) => {
    expect(readQuery(readFileSync(join(INFRA, path), 'utf8')).wrong).toEqual([]);
  });
});
