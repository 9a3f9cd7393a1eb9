import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { defineModel } from '../../lib/define.ts';
import { model } from '../../model/model.ts';
import { httpDoor } from '../../test/kit/http.ts';
import { directory } from './directory.ts';

const alone = defineModel({
  roles: ['reader', 'manager', 'hr', 'operator'],
  operatorRole: 'operator',
  entities: [...directory],
});

/** Bytes, and bytes on the wire. */
test.each([
  ['all example packs', httpDoor.createRoutes(model), 348_500, 33_600],
  ['this pack', httpDoor.createRoutes(alone), 238_500, 25_900],
] as const)(
  'the description of the API of %s has a bounded size',
  { tags: ['slow'] },
  (_, routes, most, mostCompressed) => {
    const text = JSON.stringify(httpDoor.describeRoutes(routes));
    const hint =
      'an entity adds about 11 kB, and 700 compressed: raise the bound for a new one, or by the size of a new route';
    expect(text.length, hint).toBeLessThan(most);
    expect(gzipSync(text).length, hint).toBeLessThan(mostCompressed);
  },
);

test('the description of each tag has at most 85 kB', { tags: ['slow'] }, () => {
  const routes = httpDoor.createRoutes(model);
  const sizes = [...new Set(routes.map(httpDoor.tagOf))].map((tag) => {
    return [
      tag,
      JSON.stringify(httpDoor.describeRoutes(routes.filter((route) => httpDoor.tagOf(route) === tag))).length,
    ] as const;
  });
  expect(sizes.length).toBeGreaterThan(10);
  expect(sizes.filter(([, bytes]) => bytes > 85_000)).toEqual([]);
});
