import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import { defineDeployment } from '../../../lib/define/define-model.ts';
import { indexEntity, interPartitionIndex } from '../../../lib/define/indexes.ts';

/** A pet that is found by its name in a table of names, and goes to an archive. */
const pet = (name: string, tables: { table?: string; names?: string; archive?: string } = {}) =>
  defineEntity(name, {
    schema: z.object({ home: z.string(), id: z.string(), name: z.string() }),
    table: tables.table ?? name,
    key: { partition: '{home}', row: `${name}_{id}` },
    indexes: {
      name: interPartitionIndex({
        table: tables.names ?? `${name}byname`,
        partition: '{name#}',
        row: '{name}',
        unique: true,
      }),
    },
    archive: { table: tables.archive ?? `former${name}` },
    access: { read: [], write: [] },
  });

test('a deployment is what it is made of, also where two share a table', () => {
  const pets = [pet('cats', { table: 'pets' }), pet('dogs', { table: 'pets' })];
  expect(defineDeployment(pets)).toEqual(pets);
});

test.each([
  [
    'the table of an index',
    { names: 'catsbyname' },
    /"cats": its index or archive is in the table "catsbyname", which "dogs" uses/,
  ],
  ['that of an archive', { archive: 'formercats' }, /"formercats", which "dogs" uses/],
  ['that of an index with one that is stored there', { table: 'catsbyname' }, /"catsbyname", which "dogs" uses/],
])('a deployment is refused in which two share %s', (_, tables, reason) => {
  expect(() => defineDeployment([pet('cats'), pet('dogs', tables)])).toThrow(reason);
  expect(() => defineDeployment([pet('dogs', tables), pet('cats')])).toThrow('The model is not valid');
});

/** One that is listed by its name beside it. */
const listed = (name: string, row: '{name}' | 'named_{name}' | 'called_{name}') =>
  defineEntity(name, {
    schema: z.object({ home: z.string(), id: z.string(), name: z.string() }),
    table: 'pets',
    key: { partition: '{home}', row: `${name}_{id}` },
    indexes: { list: indexEntity({ row, holds: '{id}' }) },
    access: { read: [], write: [] },
  });

test('a deployment is refused in which a list in a shared table may be of either of two entities', () => {
  const cats = listed('cats', 'named_{name}');
  expect(() => defineDeployment([cats, listed('dogs', '{name}')])).toThrow(
    /the rows of its index "list" .*\{name\}.* of "cats"/,
  );
  expect(() => defineDeployment([cats, listed('dogs', 'named_{name}')])).toThrow(
    'can have the same key as the rows of its index "list"',
  );
  expect(defineDeployment([cats, listed('dogs', 'called_{name}')])).toHaveLength(2);
});
