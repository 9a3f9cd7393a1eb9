import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('every comment can be read without the one before', () => {
  const files = globSync(['lib/**/*.ts', 'local/**/*.ts', 'web/**/*.{ts,tsx}']);
  const leaning = /^ *(?:\/\*\*|\/\/|\*) (?:As `|Of (?:its|the)\b|The same(?:,|\.| (?:as|for|with|but)\b)).*/gm;
  const found = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(leaning)].map(([comment]) => `${file}: ${comment.trim()}`),
  );
  expect(files.length).toBeGreaterThan(300);
  expect(found).toEqual([]);
});
