import { glob, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { model } from '../fixtures/model.ts';
import { modelParts } from '../kit/define.ts';

const LIB = new URL('../../lib', import.meta.url).pathname;

/** Names of the packs that lib has for reasons of its own. */
const ALLOWED: Readonly<Record<string, string>> = {
  address: 'of a row: table, partition and row key',
  age: 'of a message, and max-age of a response',
  at: 'an instant, and Array.at',
  date: 'a format of JSON Schema',
  day: 'a unit of the calendar',
  description: 'a member of OpenAPI documents',
  email: 'a format of JSON Schema',
  hour: 'a unit of the calendar',
  id: 'of a message or a request',
  kind: 'of an index or an action, and the field of unions',
  operator: 'whom a message addresses',
  orders: 'a verb, in a message',
  people: 'a noun, in a message',
  succeeded: 'a status of an operation',
  title: 'a member of problem details (RFC 9457)',
  year: 'a unit of the calendar',
};

/** Roles, claims, entities, tables, indexes and fields of the packs. */
const names = new Set([
  ...model.roles,
  ...modelParts
    .withArchives(model.list)
    .flatMap(({ name, table, indexes, schema, access: { own } }) => [
      name,
      table,
      ...Object.keys(indexes),
      ...Object.keys(schema.shape),
      ...(own && 'claim' in own ? [own.claim, ...Object.keys(own.verifiedBy ?? {})] : []),
    ]),
]);

test('lib has no role, claim, entity, index or field of the packs in its code', async () => {
  const found: string[] = [];
  for await (const file of glob('**/*.ts', { cwd: LIB })) {
    if (file.startsWith('model/')) continue;
    const code = (await readFile(`${LIB}/${file}`, 'utf8')).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    for (const [word] of code.matchAll(/[A-Za-z_][A-Za-z0-9_]*/g))
      if (names.has(word) && !Object.hasOwn(ALLOWED, word)) found.push(`${word}: lib/${file}`);
  }
  expect([...new Set(found)].toSorted()).toEqual([]);
});
