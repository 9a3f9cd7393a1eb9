import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { rowsWithin } from '../../../lib/access/granted-rows.ts';
import {
  type DeclaredEntity,
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../lib/index.ts';
import { makeExampleValues } from '../../../local/packs/example-values.ts';
import { model as deployed } from '../../../model/model.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { model as fixtures } from '../../fixtures/model.ts';
import { SAMPLES } from '../../fixtures/samples.ts';
import { accessChecks } from '../../kit/access.ts';
import { defineCodec, defineKeys, type Entity } from '../../kit/define.ts';
import type { Internal } from '../../kit/internal.ts';
import { sampleRuns } from '../../points.ts';
import { covers } from './covers.ts';

/** What a grant of a partition opens. Azurite checks no bounds, so the grant itself is compared with the keys of every row. */

const NOW = Date.parse('2026-11-20T10:00:00Z');
const access = { read: ['hr'], write: ['hr'] } as const;
const text = z.string().min(1).max(20);

/** They differ in their length, in their last character, and are prefixes of one another. */
const HEADS = ['', 'a', 'a_', 'a`', 'ab', 'b_', 'a!-', '~', 'é'];
/** Values that begin with characters before, after and equal to those of the heads. */
const VALUES = ['a', '_', '`', '~', 'é', '0', '!-t', 'b_a', 'text'];

const FORMS = ['plain', 'constant', 'split', 'child', 'copies', 'list', 'numbers'] as const;

const owners = defineEntity('owners', {
  schema: z.object({ id: text, sub: text }),
  table: 'owners',
  key: { partition: 'all', row: '{id}' },
  indexes: { sub: interPartitionIndex({ table: 'ownersbysub', partition: 'all', row: '{sub}', unique: true }) },
  access: { ...access, own: { claim: 'sub', index: 'sub' } },
});

/** A granted entity, and another one in its table and partition. */
function modelOf(one: string, other: string, form: (typeof FORMS)[number]) {
  const schema = z.object({ id: text, note: text, far: text.optional(), more: text.optional() });
  const granted = defineEntity('granted', {
    schema,
    table: 'shared',
    key: { partition: '{id}', row: `${one}{note}` },
    access: { ...access, own: { through: owners, permissions: 'r' } },
  });
  const isChild = form === 'child';
  const rows: Partial<Record<typeof form, string>> = {
    child: `${one}{note}_{far}`,
    constant: other,
    split: other,
    copies: 'zz_{note}',
    list: 'zz_{note}',
  };
  const others = defineEntity('others', {
    schema: form === 'numbers' ? schema.extend({ note: z.string().regex(/^\d{1,3}$/) }) : schema,
    table: 'shared',
    key: { partition: '{id}', row: rows[form] ?? `${other}{note}` },
    ...(isChild ? { childOf: granted, schema: schema.required() } : {}),
    ...(form === 'split' ? { split: { text: ['more'] } } : {}),
    ...(form === 'copies' ? { indexes: { far: intraPartitionIndex({ row: `${other}{far}_{note}` }) } } : {}),
    ...(form === 'list' ? { indexes: { far: indexEntity({ row: `${other}{far}`, holds: '{note}' }) } } : {}),
    access,
  } as never) as unknown as DeclaredEntity;
  return defineModel({ roles: ['hr'], operatorRole: 'hr', entities: [owners, granted, others] });
}

/** The row keys that an entity with these values has. */
function rowsOf(entity: Entity, values: Values): string[] {
  const row = defineKeys.buildKey(entity.row, values);
  const indexed = entity.features.flatMap(({ layout, projections }) => [
    ...(layout?.numbered?.keys(entity) ?? []),
    ...(projections?.of(entity) ?? []).flatMap(({ at, settle }) => (settle === 'transaction' ? [at] : [])),
  ]);
  return [
    row,
    ...Object.keys(entity.split).map((group) => `${row}!-${group}`),
    ...indexed.map((keys) => defineKeys.buildKey(keys.row, values)),
  ];
}

const partition = 'p';
const isCovered = (granted: Entity, row: string) =>
  covers(
    accessChecks.grantFor(granted, { table: granted.table, partition }, { now: NOW }),
    { ...granted, partition, row },
    'r',
    NOW,
  );

test.each(FORMS)(
  'no accepted model has a grant of a partition that covers a row of another entity: %s',
  { tags: ['slow'] },
  (form) => {
    let accepted = 0;
    let rejected = 0;
    for (const one of HEADS)
      for (const other of HEADS) {
        let granted: Entity | undefined;
        let others: Entity | undefined;
        try {
          [, granted, others] = modelOf(one, other, form).list;
        } catch (error) {
          if (/a grant \(access\.own\) opens/.test(String(error))) rejected += 1;
        }
        if (!granted || !others) continue;
        accepted += 1;
        for (const note of VALUES) {
          const values = { id: partition, note: form === 'numbers' ? '007' : note, far: note };
          for (const row of rowsOf(others, values))
            expect(isCovered(granted, row), `${one}… covers ${row}`).toBe(false);
          const mine = defineKeys.buildKey(granted.row, values);
          expect(isCovered(granted, mine), `${one}… covers ${mine}`).toBe(true);
        }
      }
    expect(rejected).toBeGreaterThan(0);
    // The row of a child begins with that of its parent.
    expect(accepted > 0).toBe(form !== 'child');
  },
);

const granted = [...deployed.list, ...fixtures.list].filter(({ access: { own } }) => own && 'through' in own);

test.each(granted.map((entity) => [entity.name, entity] as const))(
  'a grant of a partition of %s covers its rows',
  (_, entity) => {
    const values = {
      ...(SAMPLES[entity.name]?.(1) ?? makeExampleValues(entity)),
      day: '2026-11-20',
      year: 2026,
      at: '2026-11-20T10:00:00Z',
      claimId: 'c',
    };
    const partition = defineKeys.buildKey(entity.partition, values);
    const grant = accessChecks.grantFor(entity, { table: entity.table, partition }, { now: NOW });
    expect(
      covers(grant, { table: entity.table, partition, row: defineKeys.buildKey(entity.row, values) }, 'r', NOW),
    ).toBe(true);
  },
);

const day = z.iso.date();
/** Characters that a key escapes, that sort before and after a separator, and of which one text is the beginning of another. */
const KINDS = ['a', 'ab', 'ac', 'a!', 'a_', 'a`', 'a/b', 'a b', 'b', 'é', 'a\uffee'];
const DAYS = ['2026-10-31', '2026-11-01', '2026-11-20', '2026-11-21', '2027-01-01'];
const SIZES = [0, 1, 2, 9, 10, 99, 100];
const STATES = ['draft', 'final'];
const ROWS = [
  'n_{kind}_{day}_{size:3}',
  'n_{kind}_{size:3}_{day}',
  'n_{day}_{kind}_{size:3}',
  'n_{size:3}_{kind}_{day}',
  '{day}_{size:3}_{kind}',
  '{size:3}_{day}-{kind}',
];
const rangedBy = (row: string): Entity => {
  const schema = z.object({ id: text, kind: text, day, size: z.int32(), state: text });
  const declaration = { schema, table: 'ranged', key: { partition: '{id}', row }, access };
  const { ranged } = deploy(defineEntity('ranged', declaration as never) as unknown as DeclaredEntity);
  return ranged as Entity;
};
const entities = ROWS.map(rangedBy);
const everyRow = KINDS.flatMap((kind) =>
  DAYS.flatMap((on) => SIZES.flatMap((size) => STATES.map((state) => ({ id: 'p', kind, day: on, size, state })))),
);

const equal = (field: string, values: readonly (string | number)[]) =>
  fc.constantFrom(...values).map((value): Internal['Comparison'][] => [{ field, operator: 'eq', values: [value] }]);
const prefix = (field: string, prefixes: readonly string[]) =>
  fc.constantFrom(...prefixes).map((from): Internal['Comparison'][] => {
    const { before } = defineKeys.rangeOfPrefix(from);
    const end: Internal['Comparison'][] = before === undefined ? [] : [{ field, operator: 'lt', values: [before] }];
    return [{ field, operator: 'ge', values: [from] }, ...end];
  });
const between = (field: string, bounds: readonly (string | number)[]) =>
  fc.tuple(fc.constantFrom(...bounds), fc.constantFrom(...bounds)).map(([from, to]): Internal['Comparison'][] => [
    { field, operator: 'ge', values: [from] },
    { field, operator: 'le', values: [to] },
  ]);
const terms = {
  kind: fc.oneof(equal('kind', KINDS), prefix('kind', ['', 'a', 'a_', 'é', 'a/', '\ud7ff']), between('kind', KINDS)),
  day: fc.oneof(
    equal('day', DAYS),
    prefix('day', ['2026', '2026-1', '2026-11-2']),
    between('day', [...DAYS, '2026-11']),
  ),
  size: fc.oneof(equal('size', SIZES), between('size', [...SIZES, -1, 1.5, 1000])),
  state: equal('state', STATES),
};
const alternatives = fc
  .subarray(Object.keys(terms) as (keyof typeof terms)[], { minLength: 1, maxLength: 3 })
  .chain((fields) => fc.tuple(...fields.map((field) => terms[field])))
  .map((comparisons) => comparisons.flat());

test('a range has the rows of a rule and no others', () => {
  let ranges = 0;
  fc.assert(
    fc.property(fc.constantFrom(...entities), alternatives, (entity, comparisons) => {
      const rows = rowsWithin(entity, [comparisons]);
      if (!rows) return;
      ranges += 1;
      const grant = accessChecks.grantFor(entity, { table: 'ranged', partition: 'p', rows }, { now: NOW });
      for (const values of everyRow) {
        const isOpen = covers(
          grant,
          { table: 'ranged', partition: 'p', row: defineKeys.buildKey(entity.row, values) },
          'r',
          NOW,
        );
        if (isOpen !== defineCodec.matches(comparisons, values)) throw new Error(JSON.stringify({ rows, values }));
      }
    }),
    sampleRuns(6_000),
  );
  expect(ranges).toBeGreaterThan(0);
});

test('a rule has a range if it compares the first fields of the row key', () => {
  const entity = entities[0] as Entity;
  const kind: Internal['Comparison'] = { field: 'kind', operator: 'eq', values: ['a/b'] };
  const on: Internal['Comparison'] = { field: 'day', operator: 'eq', values: ['2026-11-20'] };
  const sizes: Internal['Comparison'][] = [
    { field: 'size', operator: 'ge', values: [2] },
    { field: 'size', operator: 'le', values: [10] },
  ];
  expect(rowsWithin(entity, [[kind]])).toEqual({ firstRow: 'n_a!2fb_', lastRow: 'n_a!2fb`' });
  expect(
    rowsWithin(entity, [
      [on, kind],
      [kind, on],
    ]),
  ).toEqual({
    firstRow: 'n_a!2fb_2026-11-20_',
    lastRow: 'n_a!2fb_2026-11-20`',
  });
  expect(rowsWithin(entity, [[kind, on, ...sizes]])).toEqual({
    firstRow: 'n_a!2fb_2026-11-20_002',
    lastRow: 'n_a!2fb_2026-11-20_010\uffff',
  });
  expect(rowsWithin(entity, [[on]])).toBeUndefined();
  expect(rowsWithin(entity, [[kind], [kind, on]])).toBeUndefined();
  expect(rowsWithin(entity, [])).toBeUndefined();
  expect(rowsWithin(entity, [[{ ...kind, operator: 'in', values: ['a', 'b'] }]])).toBeUndefined();
});

test('a whole row key is a range of one row, which has no longer key', () => {
  const entity = entities[4] as Entity;
  const comparisons = Object.entries({ day: '2026-11-20', size: 2, kind: 'a' }).map(
    ([field, value]): Internal['Comparison'] => {
      return { field, operator: 'eq', values: [value] };
    },
  );
  const key = '2026-11-20_002_a';
  expect(rowsWithin(entity, [comparisons])).toEqual({ firstRow: key, lastRow: key });
});

test.each([
  [
    'a hash',
    'n_{kind#}_{kind}_{day}_{size:3}',
    [
      { field: 'kind', operator: 'ge', values: ['a'] },
      { field: 'kind', operator: 'lt', values: ['b'] },
    ],
  ],
  [
    'the newest first',
    'n_{day~}_{kind}_{size:3}',
    [
      { field: 'day', operator: 'ge', values: ['2026-11-01'] },
      { field: 'day', operator: 'le', values: ['2026-11-20'] },
    ],
  ],
] as const)('a row key that begins with %s has no range of values', (_, row, comparisons) => {
  expect(rowsWithin(rangedBy(row), [comparisons])).toBeUndefined();
});

test('a range has no copy of a row that is out of reach', () => {
  const { indexed, apart } = deploy(
    ...(['indexed', 'apart'] as const).map((name) =>
      defineEntity(name, {
        schema: z.object({ id: text, kind: z.string().regex(/^[a-f]+$/), note: text }),
        table: name,
        key: { partition: '{id}', row: '{kind}_{note}' },
        indexes: { note: intraPartitionIndex({ row: name === 'indexed' ? '{note}=by-{kind}' : '={note}_{kind}' }) },
        access,
      }),
    ),
  ) as Record<string, Entity>;
  const limit = [[{ field: 'kind', operator: 'eq' as const, values: ['ab'] }]];
  expect(rowsWithin(indexed as Entity, limit)).toBeUndefined();
  expect(rowsWithin(apart as Entity, limit)).toEqual({ firstRow: 'ab_', lastRow: 'ab`' });
});
