import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import type { Entity } from '../../../lib/define/entity.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../lib/define/indexes.ts';
import type { FieldsOf } from '../../../lib/define/key-template.ts';

const schema = z.object({ city: z.string(), id: z.string(), name: z.string().optional(), at: z.string() });
const access = { read: [], write: [] };
const key = { partition: '{city}', row: 'id_{id}' } as const;
const common = { schema, table: 'things', key, access } as const;

/** In the table of `common`, so that others may be details of them, count them or copy from them. */
const things = () => defineEntity('things', common);
const partOf = (things: Entity) =>
  ({ ...common, key: { partition: '{city}', row: 'id_{id}_{at}' }, childOf: things }) as const;
const part = () => defineEntity('parts', partOf(things()));
const copyOf = (source: Entity) =>
  ({ denormalized: [{ source, reference: { field: 'name', keyField: 'id' }, copies: { at: () => '' } }] }) as const;
const beside = { schema: schema.extend({ partCount: z.int32() }), key: { partition: '{city}', row: 'city' } } as const;

const misspeltRow = intraPartitionIndex({ row: 'n_{nam}' });
const misspeltCopy = intraPartitionIndex({ row: 'n_{name}', copies: ['nam'] });
const misspeltPartition = interPartitionIndex({ table: 'byname', partition: '{nam#}', row: '{name}', unique: true });
const misspeltMember = indexEntity({ row: 'n_{name}', holds: '{idd}' });

describe('a misspelt field is a compile error', () => {
  // Each of these lines is an error to the compiler, or the comment above it is: `npm run types` fails either way.
  test('wherever a declaration names one', () => {
    expectTypeOf<FieldsOf<'a_{city}_{id#}_{year:4}_{at~}_{n%8}'>>().toEqualTypeOf<
      'city' | 'id' | 'year' | 'at' | 'n'
    >();
    const declare = [
      // @ts-expect-error
      () => defineEntity('things', { ...common, key: { partition: '{town}', row: '{id}' } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, key: { partition: '{city}', row: 'id_{ident}' } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, indexes: { misspeltCopy } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, indexes: { misspeltRow } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, indexes: { misspeltPartition } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, indexes: { misspeltMember } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, movable: ['town'] }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, period: { per: 'day', field: 'day', keep: 3 } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, access: { ...access, restricted: { nam: ['hr'] } } }),
    ];
    expect(declare).toHaveLength(9);
  });
});

describe('a declaration that cannot work is refused when it is made:', () => {
  test.each([
    [
      'a detail whose key does not begin with that of its master',
      () =>
        defineEntity('parts', {
          ...common,
          key: { partition: '{city}', row: 'part_{id}_{name}' },
          childOf: things(),
        }),
      /the key of a child must begin with that of its parent "things"/,
    ],
    [
      'a detail with an index',
      () =>
        defineEntity('parts', {
          ...partOf(things()),
          indexes: { name: indexEntity({ row: 'n_{name}', holds: '{id}' }) },
        }),
      /a child of "things" can have no index/,
    ],
    [
      'a detail with a copied field',
      () =>
        defineEntity('parts', {
          ...partOf(things()),
          ...copyOf(things()),
        }),
      /a child of "things" can have no index/,
    ],
    [
      'a detail of a detail',
      () =>
        defineEntity('screws', {
          ...common,
          key: { partition: '{city}', row: 'id_{id}_{at}_{name}' },
          childOf: part(),
        }),
      /its parent "parts" is a child itself/,
    ],
    [
      'a count of more than 32 bits',
      () =>
        defineEntity('cities', {
          ...common,
          schema: schema.extend({ thingCount: z.int().optional() }),
          key: beside.key,
          counts: { thingCount: things() },
        }),
      /the count "thingCount" must be declared as z\.int32\(\)/,
    ],
    [
      'a count of details',
      () => defineEntity('cities', { ...common, ...beside, counts: { partCount: part() } }),
      /counts "parts", which are children of "things"/,
    ],
    [
      'a copy of a detail',
      () =>
        defineEntity('cities', {
          ...common,
          key: beside.key,
          ...copyOf(part()),
        }),
      /copy from "parts", which are children/,
    ],
    [
      'a copy of what several of a partition could copy',
      () => defineEntity('teams', { ...common, key: { partition: '{city}', row: 'team_{id}' }, ...copyOf(things()) }),
      /only one row of a partition may/,
    ],
    [
      'a copy of what another entity copies',
      () => {
        const source = things();
        for (const row of ['mayor', 'deputy'])
          defineEntity(row, { ...common, key: { partition: '{city}', row }, ...copyOf(source) });
      },
      /Entity "deputy": the denormalized fields copy from "things", and only one row/,
    ],
    [
      'two copies of one entity',
      () => {
        const { denormalized } = copyOf(things());
        return defineEntity('mayor', { ...common, key: beside.key, denormalized: [...denormalized, ...denormalized] });
      },
      /Entity "mayor": the denormalized fields copy from "things", and only one row/,
    ],
    [
      'what clients write, and is archived',
      () => {
        const own = { claim: 'email', index: 'byName' } as const;
        const byName = interPartitionIndex({ table: 'byname', partition: '{name#}', row: '{name}', unique: true });
        const through = defineEntity('things', { ...common, indexes: { byName }, access: { ...access, own } });
        return defineEntity('notes', {
          ...common,
          archive: { table: 'oldnotes' },
          access: { ...access, own: { through, permissions: 'ra' } },
        });
      },
      /clients may write it straight to storage/,
    ],
    ['a table name with capitals', () => defineEntity('things', { ...common, table: 'Things' }), /lower-case/],
    [
      'an index elsewhere that is not unique and does not tell entities apart',
      () =>
        defineEntity('things', {
          ...common,
          indexes: { a: interPartitionIndex({ table: 'byname', partition: '{name}', row: 'x' }) },
        }),
      /lacks city, id/,
    ],
    [
      'a list elsewhere that does not say where its members are',
      () =>
        defineEntity('things', {
          ...common,
          indexes: { a: indexEntity({ table: 'byname', partition: '{name}', row: 'ids', holds: '{id}' }) },
        }),
      /city/,
    ],
    [
      'a move that leaves the partition as it is',
      () => defineEntity('things', { ...common, movable: ['name'] }),
      /partition key/,
    ],
    [
      'a period with an archive',
      () =>
        defineEntity('things', { ...common, period: { per: 'day', field: 'at', keep: 1 }, archive: { table: 'old' } }),
      /an entity with a period/,
    ],
    [
      'a restricted field in the key',
      () => defineEntity('things', { ...common, access: { ...access, restricted: { id: ['hr'] } } }),
      /"id" is part of the key/,
    ],
    [
      'a template whose fields run into each other',
      () => defineEntity('things', { ...common, key: { partition: '{city}', row: '{id}{name}' } }),
      /separator/,
    ],
    [
      'a separator that an escape could be taken for',
      () => defineEntity('things', { ...common, key: { partition: '{city}', row: '{id}a{name}' } }),
      /punctuation/,
    ],
  ])('%s', (_, declare, reason) => {
    expect(declare).toThrow(reason);
  });

  test('and leaves no trace in those that it names', () => {
    const counted = things();
    const remote = defineEntity('others', { ...common, table: 'others' });
    const declare = () =>
      defineEntity('mayor', { ...common, ...beside, counts: { partCount: counted }, ...copyOf(remote) });
    expect(declare).toThrow(/copy from "others", which is in another table/);
    expect(counted.countedBy).toEqual([]);
  });
});
