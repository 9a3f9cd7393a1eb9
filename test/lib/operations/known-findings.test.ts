import { expect, test } from 'vitest';
import { createKnownFindings } from '../../../lib/operations/known-findings.ts';
import type { Internal } from '../../kit/internal.ts';

const finding = (kind: Internal['Suspicion']['kind'], row: string): Internal['Suspicion'] => ({
  kind,
  of: 'sales',
  table: 'sales',
  partition: 'Bern',
  row,
});

test('keeps the room of a position for findings that may explain others', () => {
  const known = createKnownFindings();
  for (let n = 0; n < 200; n += 1) known.add(finding('invalid', `S${n}`));
  expect(known.isFull).toBe(false);
  const total = { table: 'salesbymonth', partition: 'Bern', row: 't_2026-01' };
  known.add({ ...finding('missing', 'c'), sum: total });
  expect(known.explains({ kind: 'wrong-total', of: 'sales', ...total })).toBe(true);
  expect(known.explains(finding('orphaned', 'c'))).toBe(true);
});
