// @module-tag long

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { appFunctions } from '../kit/api.ts';
import { alertRules as rules } from './alert-rules.ts';
import { INFRA, theDeclaration, theResource } from './bicep.ts';
import { readQuery, readQueryBeforeTelemetry } from './kusto.ts';

test('the parser finds an error in a query', { tags: ['slow'] }, () => {
  expect(readQuery('AppMetrics | where Name = 1').errors).not.toEqual([]);
  expect(readQuery('AppMetrics | summarize last = max(TimeGenerated)').errors).not.toEqual([]);
  expect(readQuery('AppMetrics | where Nmae == 1').errors).not.toEqual([]);
  expect(readQuery('AppMetrics | project Name').errors).toEqual([]);
});

describe('the query of an alert', () => {
  test('is read for every alert', () => {
    const titles = theDeclaration('var', 'rules').value.match(/^ {4}title: /gm);
    expect(rules.length).toBe(titles?.length);
    expect(rules.flatMap(({ dimensions }) => dimensions)).toContain('Queue');
  });

  test('begins with the tables, as it is deployed', () => {
    const { text } = theResource('Microsoft.Insights/scheduledQueryRules');
    expect(text).toContain(
      ` query: 'let functionPrefix = "\${functionPrefix}";let hasBackup = \${hasBackup};\${tables}\${rule.query}'\n`,
    );
  });

  // Queries are deployed without validation, because the tables come later: a query with an error would never fire.
  test.each(rules)(
    '$name has no error and returns a number as measure and its dimensions',
    { tags: ['slow'] },
    ({ query, dimensions }) => {
      const { errors, columns } = readQuery(query);
      expect(errors).toEqual([]);
      expect(columns.get('measure')).toMatch(/^(int|long|real)$/);
      for (const dimension of dimensions) expect(columns.get(dimension)).toBe('string');
    },
  );
});

describe('before the first telemetry', () => {
  test('a table outside a fuzzy union is missing', { tags: ['slow'] }, () => {
    expect(readQueryBeforeTelemetry('AppMetrics | count').errors).not.toEqual([]);
    expect(readQueryBeforeTelemetry('union isfuzzy=true (datatable(Name: string) []), AppMetrics').errors).toEqual([]);
  });
  test.each(rules)('the query of $name has no error', { tags: ['slow'] }, ({ query }) => {
    expect(readQueryBeforeTelemetry(query).errors).toEqual([]);
  });
  test('the alert on timers does not fire', () => {
    const { query } = rules.find(({ name }) => name === 'timer-missed') ?? { query: '' };
    // A comparison with null is null, and so not true: without isnull() every timer would count as missed.
    expect(query).toMatch(
      /extend since = coalesce\(completed, began\)\s+\| project .*iff\(isnull\(since\) or since > .*, 0, 1\)/,
    );
  });
});

test('the alert on timers watches every timer of the app', () => {
  const { query } = rules.find(({ name }) => name === 'timer-missed') ?? { query: '' };
  const watched = [...(/datatable\(Timer[^)]*\) \[([^\]]*)\]/.exec(query)?.[1]?.matchAll(/'([\w-]+)'/g) ?? [])];
  expect(watched.map(([, name]) => name).toSorted()).toEqual(Object.keys(appFunctions.TIMERS).toSorted());
  // The name of a timer in the metric is that of its function.
  expect(query).toContain('| extend Timer = strcat(functionPrefix, Timer)');
});

const bodyOf = (wanted: string) => rules.find(({ name }) => name === wanted)?.body;

test('the alert on silence fires without any metric, if storage is in use', () => {
  // Without "by", summarize returns a row for no rows.
  expect(bodyOf('telemetry-missing')).toMatch(
    /summarize received = count\(\)\n +\| project measure = iff\(received == 0 and inUse > 0, 1, 0\)/,
  );
});

// https://learn.microsoft.com/azure/azure-monitor/logs/daily-cap#alert-when-daily-cap-is-reached
test('the alert on the daily cap reads the event of the workspace', () => {
  expect(bodyOf('ingestion-capped')).toMatch(
    /_LogOperation\n +\| where Category =~ 'Ingestion'\n +\| where Detail contains 'OverQuota'\n +\| summarize measure = count\(\)/,
  );
});

test('the documentation lists every alert with its severity', () => {
  const page = readFileSync(new URL('../../docs/reference/infrastructure.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## Alerts\n(.*?)^## /ms.exec(page) ?? [];
  const rows = [...section.matchAll(/^\| ([^|]+) \| .* \| (\d) \| .*\|$/gm)].map(([, title, severity]) => [
    title,
    severity,
  ]);
  const documented = rows.filter(([title]) => !title?.includes('account-throttled'));
  expect(documented.toSorted()).toEqual(rules.map(({ title, severity }) => [title, severity]).toSorted());
});

describe('the saved query', () => {
  test.each(globSync('queries/*.kql', { cwd: INFRA }))('%s has no error', (path) => {
    expect(readQuery(readFileSync(join(INFRA, path), 'utf8')).errors).toEqual([]);
  });
});
