import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { features } from '../../../lib/features/features.ts';
import { importsOf } from '../../../local/shape/folder-circles.ts';
import { readSourceFiles } from '../../../local/shape/source-files.ts';

const folder = new URL('../../../lib/features/', import.meta.url);

test('each folder of lib/features exports features, and the list has all of them', async () => {
  const files = (await readdir(folder, { recursive: true })).filter((file) => /.+\/.+\.ts$/.test(file));
  const exported = await Promise.all(
    files.map(async (file) => {
      const members: unknown[] = Object.values(await import(new URL(file, folder).href));
      return { room: file.split('/')[0], listed: features.filter((feature) => members.includes(feature)) };
    }),
  );
  expect(exported.flatMap(({ listed }) => listed)).toHaveLength(features.length);
  const rooms = Map.groupBy(exported, ({ room }) => room);
  const empty = [...rooms].filter(([, all]) => all.every(({ listed }) => listed.length === 0)).map(([room]) => room);
  expect(empty).toEqual([]);
});

test('no feature imports another one', () => {
  const roomOf = (path: string) => /^lib\/features\/([^/]+)\//.exec(path)?.[1];
  const found = readSourceFiles('lib/features/*/**/*.ts').flatMap((file) =>
    importsOf(file)
      .filter((path) => roomOf(path) !== undefined && roomOf(path) !== roomOf(file.path))
      .map((path) => `${file.path} imports ${path}`),
  );
  expect(found).toEqual([]);
});
