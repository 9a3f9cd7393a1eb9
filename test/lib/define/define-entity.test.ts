import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import {
  type DeclaredEntity,
  defineModel,
  defineUnion,
  type FieldsOf,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../../lib/index.ts';
import { withReferences } from '../../fixtures/with-references.ts';

const roles = { roles: ['reader', 'hr', 'operator'], operatorRole: 'operator' } as const;

const schema = z.object({ city: z.string(), id: z.string(), name: z.string().optional(), at: z.string() });
const access = { read: [], write: [] };
const key = { partition: '{city}', row: 'id_{id}' } as const;
const common = { schema, table: 'things', key, access } as const;

/** Shares the table of `common`, so that other entities can be its children, count it or copy from it. */
const things = () => defineEntity('things', common);
const partOf = (things: DeclaredEntity) =>
  ({ ...common, key: { partition: '{city}', row: 'id_{id}_{at}' }, childOf: things }) as const;
const part = () => defineEntity('parts', partOf(things()));
const copyOf = (source: DeclaredEntity) =>
  ({ denormalized: { name: { source, by: 'id', copies: { at: () => '' } } } }) as const;
const beside = { schema: schema.extend({ partCount: z.int32() }), key: { partition: '{city}', row: 'city' } } as const;

const copying = { source: things(), by: 'id' } as const;
const kinds = { bird: z.object({ wings: z.int32() }) };

const attachments = { photo: { container: 'photos', maxBytes: 100, types: ['image/png'] } } as const;

const misspeltRow = intraPartitionIndex({ row: 'n_{nam}' });
const misspeltCopy = intraPartitionIndex({ row: 'n_{name}', copies: ['nam'] });
const misspeltPartition = interPartitionIndex({ table: 'byname', partition: '{nam#}', row: '{name}', unique: true });
const misspeltMember = indexEntity({ row: 'n_{name}', holds: '{idd}' });

describe('a misspelt field is a compile error', () => {
  // `npm run types` fails if a marked line compiles: an unused `@ts-expect-error` is an error too.
  test('in each part of a declaration that names a field', () => {
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
      // @ts-expect-error
      () => defineEntity('things', { ...common, attachments, access: { ...access, restricted: { foto: ['hr'] } } }),
      () => defineEntity('things', { ...common, attachments, access: { ...access, restricted: { photo: ['hr'] } } }),
      () =>
        defineUnion('things', { ...common, kinds, attachments, access: { ...access, restricted: { photo: ['hr'] } } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, derived: { nam: () => 'a' } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, defaults: { nam: () => 'a' } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, ...beside, counts: { partCont: things() } }),
      // @ts-expect-error
      () => defineEntity('things', { ...common, denormalized: { name: { ...copying, copies: { nam: () => 'a' } } } }),
      // @ts-expect-error
      () => defineUnion('things', { ...common, kinds, derived: { wing: () => 'a' } }),
      () => defineUnion('things', { ...common, kinds, derived: { name: () => 'a', wings: () => 2 } }),
    ];
    expect(declare).toHaveLength(18);
  });

  test.each([
    ['derived', { derived: { nam: () => 'a' } }],
    ['defaults', { defaults: { nam: () => 'a' } }],
    ['denormalized', { denormalized: { nam: { ...copying, copies: { name: () => 'a' } } } }],
    ['copies', { denormalized: { name: { ...copying, copies: { nam: () => 'a' } } } }],
  ])('and in %s an error of defineEntity too', (part, declared: object) => {
    expect(() => defineEntity('things', { ...common, ...declared })).toThrow(
      `Entity "things": ${part} names the field "nam", which the schema does not have. Add it to the schema, or correct the name.`,
    );
  });
});

describe('a model rejects', () => {
  test.each([
    [
      'a child whose key does not begin with the key of its parent',
      () =>
        defineEntity('parts', {
          ...common,
          key: { partition: '{city}', row: 'part_{id}_{at}' },
          childOf: things(),
        }),
      /the key does not begin with that of its parent "things"/,
    ],
    [
      'a child with an index',
      () =>
        defineEntity('parts', {
          ...partOf(things()),
          indexes: { name: indexEntity({ row: 'n_{name}', holds: '{id}' }) },
        }),
      /its parent "things" goes, .* Remove index entities/,
    ],
    [
      'a child with a copied field',
      () => {
        const parent = things();
        return defineEntity('parts', { ...partOf(parent), ...copyOf(parent) });
      },
      /its parent "things" goes, .* Remove denormalization/,
    ],
    [
      'a child of a child',
      () =>
        defineEntity('screws', {
          ...common,
          key: { partition: '{city}', row: 'id_{id}_{at}_{city}' },
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
      /the count "thingCount" is not a 32-bit integer\. Declare it as z\.int32\(\)/,
    ],
    [
      'a count of children',
      () => defineEntity('cities', { ...common, ...beside, counts: { partCount: part() } }),
      /"parts": a child goes where .* its row goes along\. Remove maintained count/,
    ],
    [
      'a copy of a child',
      () =>
        defineEntity('cities', {
          ...common,
          key: beside.key,
          ...copyOf(part()),
        }),
      /"parts": a child goes where .* its row goes along\. Remove denormalization/,
    ],
    [
      'a copied field that several rows of a partition could provide',
      () => defineEntity('teams', { ...common, key: { partition: '{city}', row: 'team_{id}' }, ...copyOf(things()) }),
      /only one row of a partition may/,
    ],
    [
      'an archive of an entity that clients write',
      () => {
        const own = { claim: 'sub', index: 'byName' } as const;
        const byName = interPartitionIndex({ table: 'byname', partition: '{name#}', row: '{name}', unique: true });
        const through = defineEntity('things', { ...common, indexes: { byName }, access: { ...access, own } });
        return defineEntity('notes', {
          ...common,
          table: 'notes',
          key: { partition: '{city}_{id}', row: 'note_{at}' },
          archive: { table: 'oldnotes' },
          access: { ...access, own: { through, permissions: 'ra' } },
        });
      },
      /clients may write it straight to storage .* keeps up archive\. Remove those, also in entities that refer to it, or grant only r/,
    ],
    [
      'a non-unique inter-partition index whose key does not distinguish entities',
      () =>
        defineEntity('things', {
          ...common,
          indexes: { a: interPartitionIndex({ table: 'byname', partition: '{name}', row: 'x' }) },
        }),
      /lacks city, id/,
    ],
    [
      'an inter-partition list without the partition of its members',
      () =>
        defineEntity('things', {
          ...common,
          indexes: { a: indexEntity({ table: 'byname', partition: '{name}', row: 'ids', holds: '{id}' }) },
        }),
      /city/,
    ],
    [
      'a period with an archive',
      () =>
        defineEntity('things', { ...common, period: { per: 'day', field: 'at', keep: 1 }, archive: { table: 'old' } }),
      /an entity with a period cannot use archive/,
    ],
    [
      'a claim that the issuer may not have verified',
      () => {
        const byName = interPartitionIndex({ table: 'byname', partition: '{name#}', row: '{name}', unique: true });
        const own = { claim: 'email', index: 'byName' } as const;
        return defineEntity('things', { ...common, indexes: { byName }, access: { ...access, own } });
      },
      /access\.own trusts the claim "email", which the issuer may not have verified\. Name the claims that say so in verifiedBy/,
    ],
    [
      'a template with adjacent fields and no separator',
      () => defineEntity('things', { ...common, key: { partition: '{city}', row: '{id}{name}' } }),
      /separator/,
    ],
    [
      'a separator that is also an escape character',
      () => defineEntity('things', { ...common, key: { partition: '{city}', row: '{id}a{name}' } }),
      /punctuation/,
    ],
  ])('%s', (_, declare, reason) => {
    expect(() => defineModel({ ...roles, entities: withReferences(declare()) })).toThrow(reason);
  });

  test('a declaration, and changes none of those that it names', () => {
    const counted = things();
    const before = Object.entries(counted);
    const remote = defineEntity('others', { ...common, table: 'others' });
    const mayor = defineEntity('mayor', {
      ...common,
      ...beside,
      counts: { partCount: counted },
      ...copyOf(remote),
    } as never);
    expect(() => defineModel({ ...roles, entities: withReferences(mayor) })).toThrow(
      /copy from "others", which is in another table/,
    );
    expect(Object.entries(counted)).toEqual(before);
  });
});

describe('a declaration', () => {
  /** Lists every object below `value` that is not frozen. Schemas keep caches and are left out. */
  function* unfrozen(value: unknown, path: string, seen = new Set<unknown>()): Generator<string> {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null && !Array.isArray(value)) return;
    if (!Object.isFrozen(value)) yield path;
    for (const [name, member] of Object.entries(value))
      if (name !== 'features') yield* unfrozen(member, `${path}.${name}`, seen);
  }

  test('is frozen at every depth, also in its linked form', () => {
    const name = intraPartitionIndex({ row: 'n_{name}', copies: ['at'] });
    const digits = schema.extend({ id: z.string().regex(/^\d+$/) });
    const source = defineEntity('things', {
      ...common,
      schema: digits,
      indexes: { name },
      archive: { table: 'oldthings', without: ['name'] },
      upgrades: { 1: (values) => values },
      version: 2,
      access: { read: ['hr'], write: ['hr'], restricted: { name: ['hr'] } },
    });
    const mayor = defineEntity('mayor', { ...common, key: beside.key, ...copyOf(source) });
    const parts = defineEntity('parts', { ...partOf(source), schema: digits });
    const { list } = defineModel({ ...roles, entities: [mayor, source, parts] });
    expect([...unfrozen([...list, source, mayor, parts], 'list')]).toEqual(['list']);
  });

  test('does not freeze its arguments', () => {
    const read: 'hr'[] = ['hr'];
    const given = { ...common, access: { read, write: [] } };
    defineEntity('things', given);
    read.push('hr');
    expect(Object.isFrozen(given.access)).toBe(false);
  });

  test('keeps its name, key fields and indexes in its type', () => {
    const name = intraPartitionIndex({ row: 'n_{name}' });
    const things = defineEntity('things', { ...common, indexes: { name } });
    expectTypeOf(things.name).toEqualTypeOf<'things'>();
    expectTypeOf(things.keyFields).toEqualTypeOf<readonly ('city' | 'id')[]>();
    expectTypeOf<keyof typeof things.indexes>().toEqualTypeOf<'name'>();
  });
});
