import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { customers, employees, movies, orders } from '../../../fixtures/model.ts';
import { definePlaces, type Entity } from '../../../kit/define.ts';
import { engineReconcile } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter((one) => one.isWellFormed());
const digits = (length: number) => fc.nat(10 ** length - 1).map((number) => String(number).padStart(length, '0'));

/**
 * Fields with two stored forms: an instant as text and as ticks, a number with and without padding, a hash that keys
 * hide.
 */
const { visits } = deploy(
  defineEntity('visits', {
    schema: z.object({ site: z.string(), at: z.iso.datetime(), number: z.int32(), code: z.string() }),
    table: 'visits',
    key: { partition: '{site}', row: '{at}_{number:6}' },
    indexes: {
      newest: interPartitionIndex({ table: 'visitsnewest', partition: 'all_{number}', row: '{at~}_{number}_{site}' }),
      code: indexEntity({ table: 'visitsbycode', partition: '{code#}', row: 'codes', holds: '{site}/{at}/{number:6}' }),
      perSite: indexEntity({
        table: 'visitlists',
        partition: '{site#}',
        row: '{site}',
        holds: '{site}/{at}/{number:6}',
      }),
    },
    access: { read: [], write: [] },
  }),
);
const { calls } = deploy(
  defineEntity('calls', {
    schema: z.object({ line: z.string(), at: z.iso.datetime() }),
    table: 'calls',
    key: { partition: '{line}', row: '{at~}' },
    indexes: { byTime: interPartitionIndex({ table: 'callsbytime', partition: 'all', row: '{at}_{line}' }) },
    access: { read: [], write: [] },
  }),
);

const at = fc
  .tuple(fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true }), fc.boolean())
  .map(([date, isShort]) => (isShort ? date.toISOString().replace('.000Z', 'Z') : date.toISOString()));
const examples: readonly (readonly [Entity, fc.Arbitrary<Values>])[] = [
  [employees, fc.record({ department: text, employeeId: digits(6), email: text, firstName: text, lastName: text })],
  [
    movies,
    fc.record({
      genre: text,
      title: text,
      year: fc.integer({ min: 1800, max: 9999 }),
      filmId: digits(8),
      cast: fc.array(text),
    }),
  ],
  [customers, fc.record({ city: text, customerId: text, companyName: text, lastName: text })],
  [orders, fc.record({ customerId: text, orderId: fc.nat(99_999_999), orderDate: fc.constant('2026-11-20') })],
  [visits, fc.record({ site: text, at, number: fc.nat(999_999), code: text })],
  [calls, fc.record({ line: text, at })],
];

function intentAbout(entity: Entity, values: Values, indexEntries: readonly Internal['IndexEntry'][]) {
  const { table, partition, row } = definePlaces.addressOf(entity, values);
  return {
    version: 1 as const,
    intent: 'one',
    entity: entity.name,
    table,
    items: [{ partition, row, indexEntries: [...indexEntries] }],
  };
}

describe.each(examples.map(([entity, values]) => [entity.name, entity, values] as const))(
  'an intent about %s',
  (_, entity, values) => {
    test('is accepted with every entry that the declaration gives the entity', () => {
      fc.assert(
        fc.property(values, (one) => {
          const intent = intentAbout(entity, one, definePlaces.indexEntriesOf(entity, one));
          expect(engineReconcile.possibleItems(entity, intent)).toEqual({ items: intent.items, refused: undefined });
        }),
      );
    });

    test('is rejected with an entry of another entity, except for an entry of a unique index', () => {
      fc.assert(
        fc.property(values, values, (one, other) => {
          fc.pre(
            JSON.stringify(definePlaces.addressOf(entity, one)) !==
              JSON.stringify(definePlaces.addressOf(entity, other)),
          );
          const owned = definePlaces
            .indexEntriesOf(entity, other)
            .filter((indexEntry) => !isContested(entity, indexEntry));
          const { items, refused } = engineReconcile.possibleItems(entity, intentAbout(entity, one, owned));
          expect(items[0]?.indexEntries).toEqual([]);
          expect(refused === undefined).toBe(owned.length === 0);
        }),
      );
    });
  },
);

function isContested(entity: Entity, { index: name }: Internal['IndexEntry']): boolean {
  const index = entity.indexes[name];
  return index?.kind === 'inter-partition' && index.unique;
}

describe('an intent', () => {
  const ann = { department: 'Sales', employeeId: '000001', email: 'ann@contoso.com', firstName: 'Ann', lastName: 'Xu' };
  const indexEntries = definePlaces.indexEntriesOf(employees, ann);
  const intent = intentAbout(employees, ann, indexEntries);

  test.each<[string, Partial<Internal['IndexEntry']>]>([
    ['table', { table: 'system' }],
    ['partition', { partition: 'secrets' }],
    ['row', { row: 'continuation' }],
    ['row, not escaped as the template does', { row: 'ann@contoso!2ecom' }],
  ])('with an entry of another %s loses that entry only', (_, over) => {
    const [first, ...others] = indexEntries;
    const forged = { ...intent, items: [{ ...intent.items[0], indexEntries: [{ ...first, ...over }, ...others] }] };
    const { items, refused } = engineReconcile.possibleItems(employees, forged as typeof intent);
    expect(items[0]?.indexEntries).toEqual(others);
    expect(refused).toMatch(/^it names an entry that the index emailCompanyWide of employees cannot have/);
  });

  test.each([
    ['row of another entity type', 'employees', 'Sales', 'department'],
    ['row that is a copy', 'employees', 'Sales', 'email_ann@contoso.com'],
    ['key that storage does not accept', 'employees', 'Sales/', 'empid_000001'],
    ['key that is too long', 'employees', 'S'.repeat(513), 'empid_000001'],
    ['table of another entity', 'system', 'Sales', 'empid_000001'],
  ])('about a %s is rejected', (_, table, partition, row) => {
    const { items, refused } = engineReconcile.possibleItems(employees, {
      ...intent,
      table,
      items: [{ partition, row, indexEntries }],
    });
    expect(items).toEqual([]);
    expect(refused).toBe('it names a key that no entity of employees can have');
  });

  test.each(['constructor', '__proto__', 'toString', 'indexOfALaterRelease'])('ignores an index named %s', (index) => {
    const [first] = indexEntries;
    const { items, refused } = engineReconcile.possibleItems(
      employees,
      intentAbout(employees, ann, [{ ...first, index } as Internal['IndexEntry']]),
    );
    expect({ refused, indexEntries: items[0]?.indexEntries }).toEqual({ refused: undefined, indexEntries: [] });
  });
});
