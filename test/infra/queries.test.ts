import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { all, at, children, declarations, INFRA, theResource, unquoted } from './bicep.ts';
import { readQuery, readQueryBeforeTelemetry } from './kusto.ts';

/** The tables that every query of an alert begins with. */
const tables = textOf(
  declarations.find(({ file, name }) => file === 'modules/alerts.bicep' && name === 'tables')?.node.text,
);
function textOf(declaration = ''): string {
  return /'''(?<text>[\s\S]*)'''/.exec(declaration)?.groups?.text ?? '';
}

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
      query: tables + textOf(text('query')),
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
  test('there is one for each of six', () => expect(rules.length).toBe(6));

  test('begins with the tables, as it is deployed', () => {
    const rule = theResource('Microsoft.Insights/scheduledQueryRules');
    const [query] = rule.body ? all(rule.body, 'object_property').filter(({ text }) => /^query:/.test(text)) : [];
    expect(query?.text).toMatch(/^query: '\$\{tables\}\$\{rule\.query\}'$/);
  });

  // They are deployed without validation, as the tables come later: a wrong one would never fire, and nobody would know.
  test.each(rules)('$name is right, and answers a number as measure and its dimensions', ({ query, dimensions }) => {
    const { wrong, columns } = readQuery(query);
    expect(wrong).toEqual([]);
    expect(columns.get('measure')).toMatch(/^(int|long|real)$/);
    for (const dimension of dimensions) expect(columns.get(dimension)).toBe('string');
  });
});

describe('before the first telemetry', () => {
  test('a table that is named without a fuzzy union is missing', () => {
    expect(readQueryBeforeTelemetry('AppMetrics | count').wrong).not.toEqual([]);
    expect(readQueryBeforeTelemetry('union isfuzzy=true (datatable(Name: string) []), AppMetrics').wrong).toEqual([]);
  });
  test.each(rules)('the query of $name is right', ({ query }) => {
    expect(readQueryBeforeTelemetry(query).wrong).toEqual([]);
  });
  test('the alert on timers does not fire', () => {
    const { query } = rules.find(({ name }) => name === 'timer-missed') ?? { query: '' };
    // A comparison with null is null, which is not true: without the first condition every timer would be missed.
    expect(query).toMatch(
      /extend since = coalesce\(completed, began\)\s+\| project .*iff\(isnull\(since\) or since > .*, 0, 1\)/,
    );
  });
});

test('the alert on timers looks at every timer that there is', () => {
  const folder = join(INFRA, '../functions');
  const source = globSync('*.ts', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8'));
  const timers = source.flatMap((text) => [...text.matchAll(/app\.timer\('([\w-]+)'/g)].map(([, name]) => name));
  const { query } = rules.find(({ name }) => name === 'timer-missed') ?? { query: '' };
  const watched = [...(/datatable\(Timer[^)]*\) \[([^\]]*)\]/.exec(query)?.[1]?.matchAll(/'([\w-]+)'/g) ?? [])];
  expect(watched.map(([, name]) => name).toSorted()).toEqual(timers.toSorted());
});

describe('a saved query', () => {
  test.each(globSync('queries/*.kql', { cwd: INFRA }))('%s is right', (path) => {
    expect(readQuery(readFileSync(join(INFRA, path), 'utf8')).wrong).toEqual([]);
  });
});
