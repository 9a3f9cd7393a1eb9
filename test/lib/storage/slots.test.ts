import { expect, test } from 'vitest';
import {
  canOverlap,
  type LayerDefinition,
  layerMatcher,
  placeOf,
  slotAt,
  slotIndex,
  slotOf,
} from '../../../lib/storage/slots.ts';

test('spreads texts that are alike, and never changes', () => {
  expect(['Sales', 'Engineering', ''].map(slotOf)).toEqual(['8de', '729', 'e3b']);
  const slots = Array.from({ length: 4_096 }, (_, index) => slotOf(`tenant-${index}`));
  expect(slots.every((slot) => /^[\da-f]{3}$/.test(slot))).toBe(true);
  // Thrown at random, 4,096 texts reach 63% of 4,096 slots.
  expect(new Set(slots).size).toBeGreaterThan(2_400);
});

test('writes a slot of a layer with the number of the layer', () => {
  expect(['07a', '1-07a', '12-fff'].map((slot) => slotAt(slotIndex(slot)))).toEqual(['07a', '1-07a', '12-fff']);
  expect(slotIndex('1-07a')).toBe(4_096 + 0x7a);
});

const layer = (definition: Omit<LayerDefinition, 'name'>): LayerDefinition => ({ name: 'one', ...definition });

test.each([
  [{ keys: ['acme'], separator: '_' }, ['acme', 'acme_', 'acme_1_2'], ['acm', 'acmeco', 'acme-1', 'Acme', '']],
  [{ keys: ['a_b', 'c'], separator: '_' }, ['a_b', 'a_b_1', 'c', 'c_1'], ['a', 'a_c', 'a_bc']],
  [{ keys: ['acme'] }, ['acme'], ['acme_1']],
  [{ from: 'a', to: 'c' }, ['a', 'a1', 'bzz'], ['A', 'c', 'c1', '']],
  [{ from: 'x' }, ['x', 'xx', 'z'], ['w']],
])('has the partitions of a layer: %j', (definition, inside, outside) => {
  const matches = layerMatcher(layer(definition));
  for (const key of inside) expect(matches(placeOf('things', key)), key).toBe(true);
  for (const key of outside) expect(matches(placeOf('things', key)), key).toBe(false);
  expect(matches({ slot: '07a', table: 'things' })).toBe(false);
});

test('has the tables of an entity with those of its periods, and their blobs', () => {
  const matches = layerMatcher(layer({ tables: ['logs', 'logsbyuser'] }));
  for (const table of ['logs', 'logs202611', 'logsbyuser']) expect(matches(placeOf(table, 'any')), table).toBe(true);
  for (const table of ['logs2', 'log', 'logsby']) expect(matches(placeOf(table, 'any')), table).toBe(false);
  expect(matches({ slot: '07a', table: 'logs' })).toBe(true);
  expect(matches({ slot: '07a' })).toBe(false);
});

test.each([
  [{ tables: ['a'] }, { tables: ['b', 'c'] }, false],
  [{ tables: ['a', 'b'] }, { tables: ['b'] }, true],
  [{ tables: ['a'] }, { keys: ['x'] }, true],
  [{ tables: ['orders'] }, { tables: ['orders2024'] }, true],
  [{ keys: ['a'], separator: '_x' }, { keys: ['a_'], separator: 'x' }, true],
  [{ keys: ['x'], separator: '_' }, { keys: ['x_1'] }, true],
  [{ keys: ['x'], separator: '_' }, { keys: ['y', 'x1'], separator: '_' }, false],
  [{ keys: ['x'] }, { from: 'a', to: 'x' }, false],
  [{ keys: ['x'] }, { from: 'x' }, true],
  [{ keys: ['x'], separator: '_' }, { from: 'x_5', to: 'x_6' }, true],
  [{ from: 'a', to: 'c' }, { from: 'c', to: 'd' }, false],
  [{ from: 'a', to: 'c' }, { from: 'b' }, true],
  [{ to: 'b' }, { to: 'c' }, true],
] as const)('tells whether a partition can be in both: %j, %j', (one, other, expected) => {
  expect([canOverlap(layer(one), layer(other)), canOverlap(layer(other), layer(one))]).toEqual([expected, expected]);
});
