import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isUpgradable, sameCopy } from '../../../../lib/engine/reconcile/reconcile.ts';
import { defineEntity, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Properties, Row } from '../../../kit/storage.ts';

const { books } = deploy(
  defineEntity('books', {
    schema: z.object({ id: z.string(), title: z.string(), subtitle: z.string().optional() }),
    table: 'books',
    key: { partition: '{id}', row: 'book' },
    version: 2,
    upgrades: {
      1: ({ name, ...values }: Values) => {
        if (name === undefined) throw new Error('Version 1 has a name.');
        return { ...values, title: name };
      },
    },
    access: { read: [], write: [] },
  }),
);
const source = { SourcePartition: '1', SourceRow: 'book' };
const expected = { ...source, EntityType: 'books', EntityVersion: 2, id: '1', title: 'One' };
const row = (properties: Properties): Row => ({ table: 'byTitle', partition: 'x', row: 'x', etag: 'e', properties });

describe('a copy', () => {
  test('is right with the same fields, whatever else the row has', () => {
    expect(sameCopy(books, row({ ...expected, Confirmed: true, Claim: 'one' }), expected)).toBe(true);
  });

  test.each([
    ['another value', { title: 'Two' }],
    ['one more field', { subtitle: 'More' }],
    ['one field less', { title: undefined }],
    ['an entity of another partition', { SourcePartition: '2' }],
    ['an entity of another row', { SourceRow: 'other' }],
    ['an earlier version, even with the same fields', { EntityVersion: 1 }],
  ])('is wrong with %s', (_, over) => {
    expect(sameCopy(books, row({ ...expected, ...over }), expected)).toBe(false);
  });
});

describe('a copy of an earlier version', () => {
  const { title: _, ...others } = expected;
  const earlier = { ...others, EntityVersion: 1, name: 'One' };

  test('is upgraded by reads, to what its entity is', () => {
    expect(isUpgradable(books, row(earlier), { expected })).toBe(true);
    expect(isUpgradable(books, row({ ...earlier, name: 'Two' }), { expected })).toBe(false);
  });

  test('of few fields is followed to its entity', () => {
    const few = { ...source, EntityType: 'books', EntityVersion: 1 };
    expect(isUpgradable(books, row(few), { expected, isPartial: true })).toBe(true);
    expect(isUpgradable(books, row({ ...few, SourceRow: 'other' }), { expected, isPartial: true })).toBe(false);
    expect(isUpgradable(books, row({ ...few, EntityVersion: 2 }), { expected, isPartial: true })).toBe(false);
  });

  test('of another entity is not upgraded', () => {
    expect(isUpgradable(books, row({ ...earlier, SourcePartition: '2' }), { expected })).toBe(false);
  });

  test('is not upgraded if it lacks what the upgrade needs', () => {
    expect(isUpgradable(books, row({ ...earlier, name: undefined }), { expected })).toBe(false);
  });
});
