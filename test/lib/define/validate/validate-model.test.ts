import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { indexEntity, interPartitionIndex, intraPartitionIndex, type Values } from '../../../../lib/index.ts';
import { model } from '../../../fixtures/model.ts';
import { entity, granted, handedIn, load, ofOne, owned, type Parts, photo } from './declarations.ts';

test('rejects a model with every error in one message', () => {
  expect(() => load(entity('things', { table: 'poison' }), entity('list', { table: 'system' }))).toThrow(
    /^The model is not valid\.\nEntity "list": the engine.*\nEntity "things": the table name "poison".*\nEntity "list": the table name "system"[^\n]*$/,
  );
});

describe('accepts a model', () => {
  test('with all sample entities, and with each pack alone', () => {
    expect(() => load(...model.list)).not.toThrow();
    const names = (...list: string[]) => model.list.filter(({ name }) => list.includes(name));
    for (const pack of [
      names('movies'),
      names('customers', 'orders', 'categories', 'products'),
      names('employees'),
      names('employees', 'departments', 'reviews'),
    ])
      expect(() => load(...pack)).not.toThrow();
  });

  test('with a partition that is granted by a unique field or by the whole key', () => {
    const id = interPartitionIndex({ table: 'thingsbyid', partition: '{id#}', row: '{id}', unique: true });
    const through = owned({ indexes: { ...ofOne.indexes, id } });
    expect(() => load(through, granted(through))).not.toThrow();
    const other = owned();
    expect(() => load(other, granted(other, { partition: '{city}_{id}' }))).not.toThrow();
    expect(() => load(other, handedIn(other))).not.toThrow();
  });

  test('with any combination of the optional parts', { tags: ['slow'] }, () => {
    const options: Parts[] = [
      { archive: { table: 'former' } },
      { movable: ['city'] },
      { maxAge: 60 },
      { large: ['large'] },
      { version: 2, upgrades: { 1: (values: Values) => values } },
      { attachments: { avatar: photo } },
      { attachments: { archive: { ...photo, container: 'scans' } } },
      { row: '{id}' },
      { row: '{day~}_{id}' },
      { row: '{year:4}_{id}' },
      { partition: '{city}_{id%8}' },
    ];
    const indexes = {
      name: intraPartitionIndex({ row: 'name_{name}', copies: 'keys' }),
      list: indexEntity({ row: 'list_{name}', holds: '{id}_{day}_{year:4}' }),
      remote: interPartitionIndex({
        table: 'elsewhere',
        partition: '{name}',
        row: '{year:4}_{day}_{city}_{id}',
        copies: 'keys',
      }),
      unique: interPartitionIndex({
        table: 'uniquename',
        partition: '{name#}',
        row: '{name}',
        unique: true,
        copies: 'keys',
      }),
      tags: interPartitionIndex({
        table: 'bytag',
        partition: '{tags[]}',
        row: '{city}_{day}_{year:4}_{id}',
        copies: ['name'],
      }),
    };
    const model = fc.record({ parts: fc.subarray(options), names: fc.subarray(Object.keys(indexes)) });
    fc.assert(
      fc.property(model, ({ parts, names }) => {
        const chosen = Object.fromEntries(Object.entries(indexes).filter(([name]) => names.includes(name)));
        const others = [entity('others', { table: 'others' }), entity('beside', { row: 'beside~{id}' })];
        const things = entity('things', { ...Object.assign({}, ...parts), indexes: chosen });
        expect(load(things, ...others).length).toBeGreaterThan(10);
      }),
    );
  });
});
