import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canOverlap,
  hashKey,
  intersectLayers,
  type LayerDefinition,
  layerMatcher,
  placeOf,
  slotAt,
  slotIndex,
  slotOf,
  subtractLayers,
} from '../../../lib/storage/slots.ts';
import { engineRead } from '../../kit/engine.ts';
import { storageBlobs } from '../../kit/storage.ts';
import { sampleRuns } from '../../points.ts';

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

test('says of a partition key its beginnings and the whole, and never changes', () => {
  expect(hashKey('acme')).toEqual(['cPRe_9oX']);
  expect(hashKey('acme_eu-2026')).toHaveLength(3);
  expect(hashKey('acme!5feu_2026')).toHaveLength(2);
  expect(hashKey('a_'.repeat(100))).toHaveLength(8);
  expect(hashKey('acme_')[0]).toBe(hashKey('acme_1')[0]);
  expect(hashKey('acme_')[1]).not.toBe(hashKey('acme_')[0]);
});

const blobOf = (table: string, partition: string) =>
  storageBlobs.placeOfBlob(engineRead.createBlobName({ table, partition, row: 'r' }, 'contents'));

const SEPARATORS = ['_', '-', '_y-'];
const parts = fc.array(fc.constantFrom('a', 'ü', '_', ...SEPARATORS), { minLength: 1, maxLength: 14, size: 'max' });

/** A partition key, and two layers of tables, keys and a range, or of some of them. Most of their keys are beginnings of the partition key. */
const cases = fc.tuple(parts, fc.constantFrom(...SEPARATORS)).chain(([key, separator]) => {
  const beginnings = fc.integer({ min: 1, max: key.length }).map((end) => key.slice(0, end));
  const keys = fc.oneof(fc.constant(key), beginnings, beginnings, parts);
  const given = {
    name: fc.constant('one'),
    tables: fc.subarray(['orders', 'notes'], { minLength: 1 }),
    keys: fc.array(
      keys.map((each) => each.join('')),
      { minLength: 1, maxLength: 3 },
    ),
    separator: fc.constant(separator),
  };
  const bound = fc.constantFrom('a', 'a_', 'ü');
  const requiredKeys = ['name', 'separator'] as const;
  const ofKeys = fc.record(given, { requiredKeys: [...requiredKeys] });
  const ofRange = fc.record({ ...given, from: bound, to: bound }, { requiredKeys: [...requiredKeys] });
  const definition: fc.Arbitrary<LayerDefinition> = fc.oneof(ofKeys, ofKeys, ofRange);
  return fc.tuple(fc.constant(key.join('')), definition, definition);
});

test('has a blob only if it has its row, and always if it has no range and the key has little punctuation', {
  tags: ['slow'],
}, () => {
  fc.assert(
    fc.property(cases, ([partition, definition]) => {
      const matches = layerMatcher(definition);
      const [hasBlob, hasRow] = [matches(blobOf('orders', partition)), matches(placeOf('orders', partition))];
      const isRange = definition.from !== undefined || definition.to !== undefined;
      if (isRange) expect(hasBlob).toBe(false);
      else if ((partition.match(/[-_]/g) ?? []).length < 8) expect(hasBlob).toBe(hasRow);
      else expect(hasRow || !hasBlob).toBe(true);
    }),
    sampleRuns(10_000),
  );
});

test('has a blob in the parts of a layer if and only if the layer has it', { tags: ['slow'] }, () => {
  fc.assert(
    fc.property(cases, ([partition, one, other]) => {
      const isIn = (definition: Omit<LayerDefinition, 'name'> | undefined) =>
        definition !== undefined && layerMatcher(layer(definition))(blobOf('orders', partition));
      const [both, rest] = [intersectLayers(one, other), subtractLayers(one, [other])];
      if (isIn(both)) expect([isIn(one), isIn(other)]).toEqual([true, true]);
      if (isIn(rest)) expect(isIn(one)).toBe(true);
      if (isIn(one)) expect(isIn(rest) || isIn(other)).toBe(true);
    }),
    sampleRuns(10_000),
  );
});
