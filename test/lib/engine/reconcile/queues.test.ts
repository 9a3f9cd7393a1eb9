import { expect, test } from 'vitest';
import { existingPart, isFormerPart, listParts, partFor } from '../../../../lib/engine/reconcile/queues.ts';

const PARTITIONS = Array.from({ length: 3_000 }, (_, number) => `department ${number}`);
const spread = (queueParts: number) =>
  Map.groupBy(PARTITIONS, (partition) => partFor({ queueParts }, 'index-changes', partition));

test('a model without parts has the queues of a model that declares none', () => {
  expect(listParts(1)).toEqual(['index-changes', 'transfers']);
  expect([...spread(1).keys()]).toEqual(['index-changes']);
});

test('partitions are spread evenly over the parts, each always to the same one', () => {
  const parts = spread(3);
  expect([...parts.keys()].toSorted()).toEqual(['index-changes', 'index-changes-1', 'index-changes-2']);
  for (const partitions of parts.values()) expect(partitions.length).toBeGreaterThan(900);
  expect(spread(3)).toEqual(parts);
});

test('only parts beyond the declared number are former ones', () => {
  const isFormer = (name: string) => isFormerPart(name, 2);
  expect(['index-changes-2', 'transfers-7', 'transfers-2-poison'].filter(isFormer)).toHaveLength(3);
  expect([...listParts(2), 'transfers-1-poison', 'transfers-poison', 'mine-7', 'transfers-x'].filter(isFormer)).toEqual(
    [],
  );
});

test('work of a former part goes to a part that exists', () => {
  const names = ['index-changes', 'index-changes-1', 'index-changes-2', 'transfers-5', 'another'];
  expect(names.map((name) => existingPart({ queueParts: 2 }, name))).toEqual([
    'index-changes',
    'index-changes-1',
    'index-changes',
    'transfers-1',
    'another',
  ]);
});
