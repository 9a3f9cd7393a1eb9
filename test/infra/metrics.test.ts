import { glob, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

async function metricsNamedIn(pattern: string): Promise<Set<string>> {
  const files = await Array.fromAsync(glob(pattern, { cwd: root }));
  expect(files.length).toBeGreaterThan(0);
  const texts = await Promise.all(files.map((file) => readFile(`${root}${file}`, 'utf8')));
  return new Set(texts.flatMap((text) => text.match(/(?<=')rowkey\.[a-z]+\.[a-z]+(?=')/g) ?? []));
}

test('alerts and saved queries read metrics that the app records', async () => {
  const recorded = await metricsNamedIn('lib/telemetry/metrics.ts');
  const read = new Set([
    ...(await metricsNamedIn('infra/modules/alerts.bicep')),
    ...(await metricsNamedIn('infra/queries/*.kql')),
  ]);
  expect(read.size).toBeGreaterThan(2);
  expect([...read].filter((name) => !recorded.has(name))).toEqual([]);
});

test('alerts and saved queries read properties that the metrics carry', async () => {
  const metrics = await readFile(`${root}lib/telemetry/metrics.ts`, 'utf8');
  const carried = new Set([...metrics.matchAll(/readonly (\w+)\??: string/g)].map(([, name]) => name));
  const queries = [
    'infra/modules/alerts.bicep',
    ...(await Array.fromAsync(glob('infra/queries/*.kql', { cwd: root }))),
  ];
  const texts = await Promise.all(queries.map((file) => readFile(`${root}${file}`, 'utf8')));
  const read = texts.flatMap((text) => [...text.matchAll(/\bProperties\.(\w+)/g)].map(([, name]) => name));
  expect(read).toContain('status');
  expect(read.filter((name) => !carried.has(name))).toEqual([]);
});
