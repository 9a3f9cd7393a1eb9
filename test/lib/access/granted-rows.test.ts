import { expect, test } from 'vitest';
import { z } from 'zod';
import { grantFor } from '../../../lib/access/grant.ts';
import type { Values } from '../../../lib/base/values.ts';
import type { DeclaredEntity } from '../../../lib/define/declaration/declaration.ts';
import type { Entity } from '../../../lib/define/declaration/entity.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../lib/define/declaration/indexes.ts';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import { buildKey } from '../../../lib/define/keys/key-template.ts';
import { defineModel } from '../../../lib/define-model.ts';
import { makeExampleValues } from '../../../local/packs/example-values.ts';
import { model as deployed } from '../../../model/model.ts';
import { model as fixtures } from '../../fixtures/model.ts';
import { SAMPLES } from '../../fixtures/samples.ts';
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
  const row = buildKey(entity.row, values);
  const indexed = entity.features.flatMap(({ layout, projections }) => [
    ...(layout?.numbered?.keys(entity) ?? []),
    ...(projections?.of(entity) ?? []).flatMap(({ at, settle }) => (settle === 'transaction' ? [at] : [])),
  ]);
  return [
    row,
    ...Object.keys(entity.split).map((group) => `${row}!-${group}`),
    ...indexed.map((keys) => buildKey(keys.row, values)),
  ];
}

const partition = 'p';
const isCovered = (granted: Entity, row: string) =>
  covers(
    grantFor(granted, { table: granted.table, partition }, { now: NOW }),
    { ...granted, partition, row },
    'r',
    NOW,
  );

test.each(FORMS)('no accepted model has a grant of a partition that covers a row of another entity: %s', (form) => {
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
        for (const row of rowsOf(others, values)) expect(isCovered(granted, row), `${one}… covers ${row}`).toBe(false);
        const mine = buildKey(granted.row, values);
        expect(isCovered(granted, mine), `${one}… covers ${mine}`).toBe(true);
      }
    }
  expect(rejected).toBeGreaterThan(0);
  // The row of a child begins with that of its parent.
  expect(accepted > 0).toBe(form !== 'child');
});

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
    const partition = buildKey(entity.partition, values);
    const grant = grantFor(entity, { table: entity.table, partition }, { now: NOW });
    expect(covers(grant, { table: entity.table, partition, row: buildKey(entity.row, values) }, 'r', NOW)).toBe(true);
  },
);
