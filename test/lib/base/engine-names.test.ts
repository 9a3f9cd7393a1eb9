import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  ENGINE_NAMES,
  FENCE_HEAD,
  FURTHER_ROW,
  KEY_NAMES,
  MARK_HEAD,
  MOVE_HEAD,
  OWN_CONTAINERS,
  OWN_QUEUES,
  OWN_TABLES,
  PROPERTIES,
  ROW_TYPES,
  SYSTEM_PARTITIONS,
  SYSTEM_ROWS,
} from '../../../lib/base/engine-names.ts';
import { defineEntity, defineModel } from '../../../lib/define.ts';
import { anyText } from '../../any-text.ts';
import { defineCodec, defineKeys } from '../../kit/define.ts';
import { operationsModel } from '../../kit/operations.ts';
import { storageSlots } from '../../kit/storage.ts';
import { SPELLED_NAMES } from '../../spelled-names.ts';

const OWN_KEYS = [FENCE_HEAD, MARK_HEAD].map((head) => head + MOVE_HEAD);
/** Templates in which values begin keys, end them, and stand between literals that begin as names of the engine. */
const TEMPLATES = [
  '{one}',
  '{one}_{two}',
  '{one}-{two}',
  '{one}.x{two}',
  '~own_{one}',
  '~{one}_{two}',
  '~own_{one}_m{two}',
  'x{one}',
];

test('no value spells a name that the engine gives to rows beside those of values, in any template', () => {
  const value = fc.oneof(fc.constantFrom(...SPELLED_NAMES), anyText({ minLength: 1, maxLength: 8 }));
  fc.assert(
    fc.property(fc.constantFrom(...TEMPLATES), value, value, (template, one, two) => {
      const key = defineKeys.buildKey(defineKeys.compileTemplate(template), { one, two });
      expect(OWN_KEYS.some((name) => key.startsWith(name))).toBe(false);
      expect(storageSlots.isFenceRow({ row: key, properties: { EntityType: 'thing' } })).toBe(false);
      expect(key.includes(FURTHER_ROW)).toBe(false);
      expect(defineCodec.parseFurtherRowKey(key)).toBeUndefined();
    }),
    { numRuns: 2_000 },
  );
});

test('no name of the engine that is a value is one in a key', () => {
  for (const one of SPELLED_NAMES)
    for (const template of TEMPLATES)
      for (const two of ['1', 'wide1', 'mwy512yl949b8d40', one]) {
        const row = defineKeys.buildKey(defineKeys.compileTemplate(template), { one, two });
        expect(storageSlots.isFenceRow({ row, properties: { one, EntityType: 'thing' } }), row).toBe(false);
        expect(defineCodec.parseFurtherRowKey(row), row).toBeUndefined();
      }
});

test('tells fences of this release by the key, and those of an earlier one by their properties too', () => {
  const id = storageSlots.newMoveId();
  expect(storageSlots.newMoveId()).not.toBe(id);
  expect(storageSlots.fenceOf(id).length).toBeLessThan(defineKeys.MAX_KEY_LENGTH);
  expect(id).not.toContain('-');
  expect(storageSlots.nameOfMove(id)).toMatch(/^[a-z0-9]+$/);
  for (const row of [storageSlots.fenceOf(id), storageSlots.markOf(id)])
    expect(storageSlots.isFenceRow({ row, properties: {} })).toBe(true);
  for (const row of [storageSlots.fenceOf('mwy512yl949b8d40'), storageSlots.markOf('mwy4zz3f407917fa')]) {
    expect(storageSlots.isFenceRow({ row, properties: {} })).toBe(true);
    expect(storageSlots.isFenceRow({ row, properties: { EntityType: null, title: null } })).toBe(true);
    expect(storageSlots.isFenceRow({ row, properties: { EntityType: 'movies' } })).toBe(false);
    expect(storageSlots.isFenceRow({ row, properties: { title: '' } })).toBe(false);
  }
  for (const row of ['~own_1999', '~open_', '~own_mwy512yl949b8d401', '~owned', '~accounts', '~containers'])
    expect(storageSlots.isFenceRow({ row, properties: {} })).toBe(false);
});

const modelOf = (row: string, option: object = {}) =>
  defineModel({
    roles: ['operator'],
    operatorRole: 'operator',
    entities: [
      defineEntity('things', {
        schema: z.object({ one: z.string(), two: z.string() }),
        table: 'things',
        key: { partition: '{one}', row },
        access: { read: [], write: [] },
        ...option,
      }),
    ],
  });

test.each(['{one}_!{two}', '~own_!m{two}', '~{one}_!m{two}', '~open_{one}_!_{two}'])(
  'rejects the row key %s, whose keys could be those of a fence',
  (row) => {
    expect(() => modelOf(row)).toThrow(/its row \(.*\) has a "!" in the row key/);
    expect(() =>
      modelOf('{two}', { key: { partition: '{one}', row: '{one}_{two}', former: { partition: '{one}', row } } }),
    ).toThrow(/its row at the former key \(.*\) has a "!" in the row key/);
  },
);

test('accepts a "!" in a row key that begins with another text', () => {
  expect(() => modelOf('x!{two}')).not.toThrow();
});

test('lists what the engine declares for itself', () => {
  const { tables, queues, containers } = operationsModel.resourcesOf([], Date.now());
  expect(new Set(OWN_TABLES)).toEqual(new Set(tables.map((table) => table.replace(/\d+$/, ''))));
  expect([...queues].sort()).toEqual(OWN_QUEUES.flatMap((queue) => [queue, `${queue}-poison`]).sort());
  expect(OWN_CONTAINERS).toEqual(expect.arrayContaining([...containers]));
  expect(new Set(ENGINE_NAMES).size).toBe(ENGINE_NAMES.length);
});

/** The sources of the engine, without the example packs. */
function sources(folder = join(import.meta.dirname, '../../../lib')): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((file) => file.isFile() && file.name.endsWith('.ts'))
    .map((file) => join(file.parentPath, file.name))
    .filter((path) => !/\/(testing|client)\//.test(path));
}

test('knows each name that a source writes beside encoded values', () => {
  const known = {
    type: new Set<string>(Object.values(ROW_TYPES)),
    partition: new Set<string>(Object.values(SYSTEM_PARTITIONS)),
    row: new Set<string>([...Object.values(SYSTEM_ROWS), ...KEY_NAMES]),
  };
  const unknown = sources().flatMap((path) => {
    const text = readFileSync(path, 'utf8');
    return [
      ...Array.from(text.matchAll(/EntityType: '([^']+)'/g), ([, name = '']) => ['type', name] as const),
      ...Array.from(
        text.matchAll(/SYSTEM_TABLE, partition: '([^']+)'/g),
        ([, name = '']) => ['partition', name] as const,
      ),
      ...Array.from(text.matchAll(/SYSTEM_TABLE,[^}]* row: '([^']+)'/g), ([, name = '']) => ['row', name] as const),
      // No other key of the engine begins with a character that begins one of its names.
      ...Array.from(text.matchAll(/['`]([~!][a-z-]{2}[^'`]*)['`]/g), ([, name = '']) => ['row', name] as const),
    ]
      .filter(([kind, name]) => !known[kind].has(name))
      .map(([kind, name]) => `${path}: ${kind} ${name}`);
  });
  expect(unknown.filter((each) => !each.includes('lib/base/engine-names.ts'))).toEqual([]);
});

test('no field or group of fields has the name of a property, a row type or a further row of the engine', () => {
  // A field begins with a lower-case letter.
  expect(PROPERTIES.filter((name) => !/^[A-Z]/.test(name))).toEqual([]);
  expect(Object.values(ROW_TYPES).filter((name) => name.includes('.'))).toEqual([]);
  expect(ENGINE_NAMES.filter((name) => name.startsWith('!') && defineCodec.FURTHER_GROUP.test(name))).toEqual([]);
  for (const name of ['list', 'tombstone', 'placeholder', 'poison', 'operations'])
    expect(() =>
      defineModel({
        roles: ['operator'],
        operatorRole: 'operator',
        entities: [
          defineEntity(name, {
            schema: z.object({ one: z.string() }),
            table: 'things',
            key: { partition: '{one}', row: 'x' },
            access: { read: [], write: [] },
          }),
        ],
      }),
    ).toThrow(/Choose a name other than/);
});
