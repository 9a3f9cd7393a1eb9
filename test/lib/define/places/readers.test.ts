import { expect, test } from 'vitest';
import { z } from 'zod';
import { rolesToReadBy, rolesToReadIndex } from '../../../../lib/define/places/readers.ts';
import { defineEntity, indexEntity, interPartitionIndex, subject, total, type Values } from '../../../../lib/index.ts';
import { model as deployed } from '../../../../model/model.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { model as fixtures } from '../../../fixtures/model.ts';
import type { Entity } from '../../../kit/define.ts';
import { featureUpkeep } from '../../../kit/features.ts';
import type { Internal } from '../../../kit/internal.ts';

/** What the functions of a declaration see, of which the model knows only the fields that they fill. */

const seen = new Set<string>();
const look = (values: Values) => {
  for (const field of Object.keys(values)) seen.add(field);
  return true;
};
function seenBy(compute: (values: Values) => unknown, values: Values): string[] {
  seen.clear();
  compute(values);
  return [...seen].sort();
}
const values = { city: 'a', id: 'b', forAll: 'c', forHr: 'd', forBoth: 'e', secret: 'f' };

const { derived, defaults, indexes, totals } = defineEntity('things', {
  schema: z.object({
    city: z.string(),
    id: z.string(),
    forAll: z.string().optional(),
    forHr: z.string().optional(),
    forBoth: z.string().optional(),
    secret: z.string().optional(),
    open: z.string().optional(),
    closed: z.string().optional(),
    openOnce: z.string(),
    closedOnce: z.string(),
  }),
  table: 'things',
  key: { partition: '{city}', row: '{id}' },
  encrypted: ['secret'],
  derived: { open: look, closed: look },
  defaults: { openOnce: look, closedOnce: look },
  indexes: {
    open: interPartitionIndex({ table: 'byid', partition: '{id}', row: '{city}', when: look }),
    closed: interPartitionIndex({ table: 'byhr', partition: '{id}', row: '{forHr}', when: look }),
  },
  totals: {
    open: total({ table: 'totals', partition: 'all', row: '{city}', when: look }),
    closed: total({ table: 'totalsbyhr', partition: 'all', row: '{forHr}', when: look }),
  },
  access: {
    read: ['reader', 'hr'],
    write: ['hr'],
    restricted: { forHr: ['hr'], forBoth: ['hr', 'reader'], closed: ['hr'], closedOnce: ['hr'], secret: ['hr'] },
  },
});

test.each([
  ['a derived field', derived.open, derived.closed],
  ['a computed default', defaults.openOnce, defaults.closedOnce],
  ['the condition of an index', indexes.open.when, indexes.closed.when],
  ['the condition of totals', totals.open?.when, totals.closed?.when],
] as const)(
  '%s is computed from fields that all its readers may read, and never from an encrypted one',
  (_, open = look, closed = look) => {
    expect(seenBy(open, values)).toEqual(['city', 'forAll', 'forBoth', 'id']);
    expect(seenBy(closed, values)).toEqual(['city', 'forAll', 'forBoth', 'forHr', 'id']);
  },
);

test('nothing is computed from a field that a role may not read to whom a rule shows the result', () => {
  const schema = z.object({ city: z.string(), id: z.string(), salary: z.int32(), shown: z.string().optional() });
  const mine = { role: 'reader', where: { id: subject() } } as const;
  const common = { schema, table: 'things', access: { read: ['reader', 'hr'], write: ['hr'] } } as const;
  const restricted = { salary: ['hr'], shown: ['hr', mine] } as const;
  const source = defineEntity('sources', {
    ...common,
    key: { partition: '{city}', row: 'source_{id}' },
    derived: { shown: look },
    access: { ...common.access, restricted },
  });
  const target = defineEntity('targets', {
    ...common,
    key: { partition: '{city}', row: 'target' },
    denormalized: { id: { source, copies: { shown: look } } },
    access: { ...common.access, restricted },
  });
  const given = { city: 'a', id: 'b', salary: 1 };
  const compute = source.derived.shown as (values: Values) => unknown;
  expect(seenBy(compute, given)).toEqual(['city', 'id']);
  const link = deploy(source, target).targets.denormalized.id;
  expect(seenBy((values) => link && featureUpkeep.copiesOf(link, values), given)).toEqual(['city', 'id']);
});

test.each([
  ['the row key', { row: 'x_{age}', holds: '{id}' }],
  ['the partition key of its table', { table: 'lists', partition: 'x_{age%4}', row: 'x', holds: '{id}' }],
  ['the members, in whose order it is read', { row: 'x', holds: '{age}_{id}' }],
])('an index is for the roles that read the fields of %s', (_, list) => {
  const access = { read: ['reader', 'hr'], write: ['hr'], restricted: { age: ['hr'] } } as const;
  expect(rolesToReadIndex({ access }, indexEntity(list as never))).toEqual(['hr']);
});

/** Every function of a declaration whose result some roles see. */
function computedOf(entity: Entity) {
  return [
    ...Object.entries(entity.derived).map(([name, compute]) => ({
      name,
      from: entity,
      compute,
      roles: rolesToReadBy(entity, [name]),
    })),
    ...Object.entries(entity.indexes).flatMap(([name, index]) =>
      index.when ? [{ name, from: entity, compute: index.when, roles: rolesToReadIndex(entity, index) }] : [],
    ),
    ...Object.entries(entity.totals).flatMap(([name, { when, uses }]) =>
      when ? [{ name, from: entity, compute: when, roles: rolesToReadBy(entity, uses) }] : [],
    ),
    ...Object.values(entity.denormalized).flatMap((link) =>
      Object.keys(link.copies).map((name) => ({
        name,
        from: link.source,
        compute: (source: Values) => featureUpkeep.copiesOf(link, source)[name],
        roles: rolesToReadBy(entity, [name]),
      })),
    ),
  ];
}

const careless = deploy(
  defineEntity('things', {
    schema: z.object({ city: z.string(), id: z.string(), age: z.int32(), isOld: z.boolean().optional() }),
    table: 'things',
    key: { partition: '{city}', row: '{id}' },
    derived: { isOld: ({ age }) => Number(age) === 1 },
    indexes: {
      old: interPartitionIndex({ table: 'byid', partition: '{id}', row: '{city}', when: ({ age }) => age === 1 }),
    },
    totals: { old: total({ table: 'totals', partition: 'all', row: '{city}', when: ({ age }) => age === 1 }) },
    access: { read: ['reader', 'hr'], write: ['hr'], restricted: { age: ['hr'] } },
  }),
);

test.each(
  Object.entries({
    'the packs': deployed.list,
    'the fixtures': fixtures.list,
    'an entity whose functions use a restricted field': Object.values(careless),
  }).flatMap(([model, list]) =>
    list.flatMap((entity: Entity) => computedOf(entity).map((one) => [model, entity.name, one.name, one] as const)),
  ),
)(
  '%s compute %s.%s alike, whatever the fields have that its readers may not read',
  (_, __, ___, { from, compute, roles }) => {
    const { read, restricted = {} } = from.access;
    const isOpen = (field: string) =>
      roles.every((role) => read.includes(role) && (restricted[field]?.includes(role) ?? true)) &&
      !from.encrypted.includes(field);
    const result = (hidden: unknown) => {
      const fields = Object.entries(from.columns).map(([field, type]) => [
        field,
        isOpen(field) ? sampleOf(type) : hidden,
      ]);
      return JSON.stringify(compute(Object.fromEntries(fields)));
    };
    expect(new Set([undefined, 'one', 'Manager', 1, ['x']].map(result)).size).toBe(1);
  },
);

function sampleOf(type: Internal['ColumnType']): unknown {
  if (type === 'String') return '2026-11-20';
  return type === 'Json' ? ['x'] : type === 'Boolean' ? true : 1;
}
