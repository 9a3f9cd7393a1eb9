import { globSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';

test('dist/main.cjs is not older than its sources', () => {
  const sources = globSync('{lib,functions}/**/*.ts');
  expect(sources.length).toBeGreaterThan(100);
  const built = statSync('dist/main.cjs').mtimeMs;
  expect(sources.filter((source) => statSync(source).mtimeMs > built)).toEqual([]);
});
