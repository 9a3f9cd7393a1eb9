import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type IndexBounds,
  indexFields,
  indexRange,
  rangeStarts,
  requireRangeStart,
} from '../../../../lib/define/places/index-range.ts';
import { defineEntity, indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../../lib/define.ts';
import { deploy } from '../../../fixtures/deploy.ts';

const table = 'byvalue';
const { things } = deploy(
  defineEntity('things', {
    schema: z.object({
      place: z.string(),
      id: z.string(),
      name: z.string(),
      day: z.iso.date(),
      at: z.iso.datetime(),
      year: z.int32(),
      weight: z.number(),
      tags: z.array(z.string()),
    }),
    table: 'things',
    key: { partition: '{place}', row: 'id_{id}' },
    indexes: {
      day: intraPartitionIndex({ row: 'day_{day}_{id}' }),
      newest: intraPartitionIndex({ row: 'at_{at~}_{id}' }),
      list: indexEntity({ row: 'name_{name}', holds: '{id}' }),
      constant: indexEntity({ row: 'all', holds: '{id}' }),
      spread: interPartitionIndex({ table, partition: 'n_{id%4}', row: '{name}_{place}_{id}' }),
      tagged: interPartitionIndex({ table, partition: '{tags[]}', row: '{year:4}_{name}_{place}_{id}' }),
      hashed: interPartitionIndex({ table, partition: '{name#}', row: '{name}', unique: true }),
      hashedFirst: intraPartitionIndex({ row: 'h_{name#}_{name}_{id}' }),
      unpadded: intraPartitionIndex({ row: 'w_{weight}_{id}' }),
      again: interPartitionIndex({ table, partition: 'p_{name}', row: '{name}_{year:4}_{place}_{id}' }),
    },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

test.each([
  ['day', [['place'], ['place', 'day']], 'the first fields of the row key'],
  ['newest', [['place'], ['place', 'at']], 'instants, newest first'],
  ['list', [['place']], 'one field'],
  ['constant', [], 'a row key without fields'],
  ['spread', [[], ['name'], ['name', 'place']], 'no field, since all buckets are read'],
  ['tagged', [['tags'], ['tags', 'year'], ['tags', 'year', 'name'], ['tags', 'year', 'name', 'place']], 'an element'],
  ['hashed', [], 'a partition key that hashes the only field'],
  ['hashedFirst', [['place', 'name']], 'no hash'],
  ['unpadded', [['place', 'weight']], 'no number without a width'],
  ['again', [['name'], ['name', 'year'], ['name', 'year', 'place']], 'each field once'],
] as const)('ranges over the index %s begin with %j: %s', (...[name, starts]) => {
  expect(rangeStarts(things, things.indexes[name])).toEqual(starts);
});

test('one value is read by the fields before those of the key', () => {
  expect(indexFields(things, things.indexes.tagged)).toEqual(['tags', 'year', 'name']);
  expect(indexFields(things, things.indexes.list)).toEqual(['place', 'name']);
});

describe('bounds', () => {
  const rangeOf = (name: keyof typeof things.indexes, given: object, bounds: IndexBounds) =>
    indexRange(things, things.indexes[name], { ...given }, bounds);

  test('are inclusive, and texts are prefixes', () => {
    expect(rangeOf('day', { place: 'x' }, { from: '2020', to: '2021-03' })).toEqual({
      from: 'day_2020',
      before: 'day_2021-04',
    });
    expect(rangeOf('day', { place: 'x' }, { prefix: '2020' })).toEqual({ from: 'day_2020', before: 'day_2021' });
    expect(rangeOf('day', { place: 'x' }, {})).toEqual({ from: 'day_', before: 'day`' });
  });

  test('follow the given fields', () => {
    expect(rangeOf('tagged', { tags: 'a', year: 7 }, { from: 'B', to: 'C' })).toEqual({
      from: '0007_B',
      before: '0007_D',
    });
  });

  test('of numbers are padded', () => {
    expect(rangeOf('tagged', { tags: 'a' }, { from: 7, to: '12' })).toEqual({ from: '0007', before: '0013' });
  });

  test('of a key that stores the newest first include both days', () => {
    const { from, before } = rangeOf('newest', { place: 'x' }, { from: '2026-01-01', to: '2026-01-02' });
    const row = (at: string) => rangeOf('newest', { place: 'x', at }, {}).from;
    const isIn = (at: string) => row(at) >= from && row(at) < String(before);
    expect([
      isIn('2025-12-31T23:59:59.999Z'),
      isIn('2026-01-01T00:00:00Z'),
      isIn('2026-01-02T23:59:59.999Z'),
      isIn('2026-01-03T00:00:00Z'),
    ]).toEqual([false, true, true, false]);
  });

  test.each([
    ['tagged', { tags: 'a' }, { from: 'x' }, 'from', '"from" must be a whole number of at most 4 digits.'],
    ['tagged', { tags: 'a' }, { to: 12_345 }, 'to', '"to" must be a whole number of at most 4 digits.'],
    ['tagged', { tags: 'a' }, { from: -1 }, 'from', '"from" must be a whole number of at most 4 digits.'],
    [
      'tagged',
      { tags: 'a' },
      { prefix: '1' },
      'prefix',
      '"prefix" needs a text, and "year" is a number or an instant.',
    ],
    ['newest', { place: 'x' }, { prefix: '2' }, 'prefix', '"prefix" needs a text, and "at" is a number or an instant.'],
    ['day', { place: 'x' }, { prefix: 'a', to: 'b' }, 'prefix', '"prefix" cannot be combined with "from" or "to".'],
    [
      'day',
      { place: 'x' },
      { order: 'descending' },
      'order',
      '"order" must be ascending: storage reads "day" in the order of its key.',
    ],
    [
      'newest',
      { place: 'x' },
      { order: 'ascending' },
      'order',
      '"order" must be descending: storage reads "at" in the order of its key.',
    ],
    ['newest', { place: 'x' }, { from: 'May' }, 'from', '"from" must be an instant, a day, a month or a year, in UTC.'],
    ['day', { place: 'x' }, { from: '\ud800' }, 'from', '"from" must be well-formed Unicode.'],
    ['day', { place: 'x' }, { to: 'x'.repeat(600) }, 'to', 'The bound to is longer than a key.'],
    [
      'unpadded',
      { place: 'x' },
      { from: 1 },
      'from',
      '"from" cannot be used: "weight" is stored without leading zeros, so its keys are not in its order.',
    ],
    [
      'hashedFirst',
      { place: 'x' },
      { from: 'a' },
      'from',
      '"from" cannot be used: "name" is stored as a hash, which has no order.',
    ],
    [
      'list',
      { place: 'x', name: 'n' },
      { from: 'a' },
      'from',
      '"from" cannot be used: every field of the key is given.',
    ],
  ] as const)('of the index %s with %j: %j are rejected', (name, given, bounds, field, message) => {
    expect(() => rangeOf(name, given, bounds)).toThrow(
      expect.objectContaining({ code: 'invalid-input', message, field }),
    );
  });
});

test.each([
  ['day', ['day'], 'A range over the index "day" of things needs "place" first.', 'place'],
  [
    'tagged',
    ['tags', 'name'],
    'A range over the index "tagged" of things needs its fields in the order of its key.',
    'tags; tags, year; tags, year, name; tags, year, name, place',
  ],
  ['hashed', [], 'The index "hashed" of things has no range, only single values.', 'name'],
] as const)('a range over the index %s by %j is rejected', (name, fields, message, accepted) => {
  expect(() => requireRangeStart(things, things.indexes[name], { name, fields })).toThrow(
    expect.objectContaining({
      code: 'invalid-input',
      message,
      accepted,
    }),
  );
});
