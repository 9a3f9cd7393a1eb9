import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { toModel } from '../../web/src/api/model.ts';
import { referredRow } from '../../web/src/api/referred-row.ts';
import { httpDoor } from '../kit/http.ts';

const access = { read: ['hr'], write: ['hr'] };
const text = z.string();
const suppliers = defineEntity('suppliers', {
  schema: z.object({ supplierId: text, vat: text }),
  table: 'suppliers',
  key: { partition: '{supplierId}', row: '{supplierId}' },
  indexes: { vat: interPartitionIndex({ table: 'suppliersbyvat', partition: '{vat}', row: '{vat}', unique: true }) },
  access,
});
const branches = defineEntity('branches', {
  schema: z.object({ city: text, branchId: text }),
  table: 'branches',
  key: { partition: '{city}', row: '{branchId}' },
  access,
});
const goods = defineEntity('goods', {
  schema: z.object({ goodId: text, supplierId: text, taxId: text, city: text, branchId: text }),
  table: 'goods',
  key: { partition: '{goodId}', row: '{goodId}' },
  references: {
    supplierId: { to: suppliers, onDelete: 'report' },
    taxId: { to: suppliers, by: 'vat', onDelete: 'report' },
    branchId: { to: branches, onDelete: 'report' },
  },
  access,
});
const { entities } = toModel(
  httpDoor.describeModel(
    defineModel({ roles: ['hr', 'operator'], operatorRole: 'operator', entities: [suppliers, branches, goods] }),
  ),
);

function find(field: string, value: string, others: Record<string, unknown> = {}) {
  const reference = entities.get('goods')?.references[field];
  const target = entities.get(reference?.to ?? '');
  if (!reference || !target) throw new Error(field);
  return referredRow(target, reference, value, others);
}

test('a referred row is found by its key', () => {
  expect(find('supplierId', 'S1')).toEqual({ key: { supplierId: 'S1' } });
});

test('a referred row is found by the field that the reference names, and not by its key', () => {
  expect(find('taxId', 'GB 1', { supplierId: 'S1' })).toEqual({ index: 'vat', key: { vat: 'GB 1' } });
});

test('a referred row is found by its key with the fields of the same names, when they have values', () => {
  expect(find('branchId', 'B1', { city: 'Bern' })).toEqual({ key: { city: 'Bern', branchId: 'B1' } });
  expect(find('branchId', 'B1', { city: '' })).toBeUndefined();
});
