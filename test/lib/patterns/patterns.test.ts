import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { patterns } from '../../../lib/patterns/patterns.ts';

test('each file of lib/patterns exports one pattern, which the list has', async () => {
  const folder = new URL('../../../lib/patterns/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file !== 'patterns.ts');
  const exported = await Promise.all(
    files.map(async (file) => {
      const members: unknown[] = Object.values(await import(new URL(file, folder).href));
      return { file, listed: members.filter((member) => patterns.some((pattern) => pattern === member)).length };
    }),
  );
  expect(exported.filter(({ listed }) => listed !== 1)).toEqual([]);
  expect(files).toHaveLength(patterns.length);
});
