import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { withFigures } from './cold-start.ts';

const load = (functions: number, factor: number) => ({
  functions,
  milliseconds: 25 * factor,
  cpuMilliseconds: 24 * factor,
  megabytes: 50 * factor,
});
const request = (milliseconds: number) => ({ answered: 500 + milliseconds, first: milliseconds, second: 6 });

test('the figures of a cold start replace those of the last run', async () => {
  const cold = { hello: load(1, 1), app: load(282, 4), compiled: load(282, 3) };
  const response = { hello: request(17), app: request(97), afterPause: request(44), ratio: 1.154 };
  const page = withFigures(await readFile('docs/internals/performance.md', 'utf8'), cold, response);
  for (const line of [
    '| An app with one function | 1 | 1.0 (24 ms) | 1.00 (50 MB) | 25 ms |',
    '| This app | 282 | 4.0 (96 ms) | 4.00 (200 MB) | 100 ms |',
    '| This app | 597 ms | 97 ms | 6 ms |',
    'The first response of this app takes **1.15** times as long as that of the app with one function.',
  ])
    expect(
      page.split('\n').filter((one) => one === line),
      line,
    ).toHaveLength(1);
  expect(withFigures(page, cold, response)).toBe(page);
  expect(() => withFigures('# Performance', cold, response)).toThrow('docs/internals/performance.md has no marks');
});
