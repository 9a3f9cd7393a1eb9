import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toProperties, toValues } from '../../../../lib/define/codec/entity-codec.ts';
import { defineEntity } from '../../../../lib/define.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { engineCore, engineRead, engineWrite } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

const { things } = deploy(
  defineEntity('things', {
    schema: z.object({
      id: z.int().min(0),
      small: z.int32().optional(),
      whole: z.int().optional(),
      real: z.number().optional(),
      yes: z.boolean().optional(),
      text: z.string().optional(),
      nested: z.object({ list: z.array(z.number()), name: z.string() }).optional(),
      choice: z.enum(['a', 'b']).optional(),
    }),
    table: 'things',
    key: { partition: 'all', row: '{id:16}' },
    access: { read: [], write: [] },
  }),
);

const engine = engineCore.createEngine(storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }));
beforeAll(() => storageTables.createTable(engine.storage, 'things'));

let id = 0;
async function roundTrip(fields: Record<string, unknown>) {
  id += 1;
  await engineWrite.createEntity(engine, things, { id, ...fields });
  const { values } = await engineRead.readEntity(engine, things, { id });
  return values;
}

describe('a stored value', () => {
  test('has the storage type that its schema requires', () => {
    expect(things.columns).toEqual({
      id: 'Int64',
      small: 'Int32',
      whole: 'Int64',
      real: 'Double',
      yes: 'Boolean',
      text: 'String',
      nested: 'Json',
      choice: 'String',
    });
  });

  test('is read back unchanged', { tags: ['slow'] }, async () => {
    const fields = fc.record(
      {
        small: fc.integer(),
        whole: fc.maxSafeInteger(),
        real: fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
        yes: fc.boolean(),
        text: fc.string({ unit: 'grapheme', minLength: 1 }),
        nested: fc.record({ list: fc.array(fc.integer()), name: fc.string() }, { noNullPrototype: true }),
        choice: fc.constantFrom('a', 'b'),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
    await fc.assert(
      fc.asyncProperty(fields, async (given) => {
        expect(await roundTrip(given)).toEqual({ id, ...given });
      }),
      { numRuns: 60 },
    );
  });

  test('can be as long as a property allows, and is rejected if it is longer', async () => {
    const text = 'ä'.repeat(32_768);
    expect(await roundTrip({ text })).toMatchObject({ text });
    await expect(roundTrip({ text: `${text}x` })).rejects.toMatchObject({
      code: 'too-large',
      field: 'text',
    });
    await expect(engineRead.readEntity(engine, things, { id })).rejects.toMatchObject({ code: 'not-found' });
  });

  test('must have the declared type and range', async () => {
    for (const [field, value] of [
      ['small', 2 ** 31],
      ['whole', 1.5],
      ['whole', 2 ** 53],
      ['real', '1'],
      ['yes', 1],
      ['choice', 'c'],
      ['text', 5],
    ] as const)
      await expect(roundTrip({ [field]: value }), field).rejects.toMatchObject({
        code: 'invalid-input',
        field,
      });
  });
});

test('is returned as valid JSON for every type of a stored property', () => {
  const stored = fc.oneof(
    fc.string(),
    fc.boolean(),
    fc.double(),
    fc.bigInt(),
    fc.date(),
    fc.uint8Array({ maxLength: 9 }),
    fc.uuid().map((value) => ({ type: 'Guid', value })),
  );
  const bags = fc.dictionary(fc.constantFrom(...Object.keys(things.columns), 'EntityVersion'), stored);
  fc.assert(
    fc.property(bags, (properties) => {
      JSON.stringify(toValues(things, properties));
    }),
  );
});

describe('an entity', () => {
  const define = (fields: readonly string[]) =>
    defineEntity('bags', {
      schema: z.object({ id: z.string(), ...Object.fromEntries(fields.map((field) => [field, z.string()])) }),
      table: 'bags',
      key: { partition: 'all', row: '{id}' },
      access: { read: [], write: [] },
    });
  const names = (count: number) => Array.from({ length: count }, (_, index) => `f${index}`);

  test('that is larger than storage accepts is rejected', () => {
    // A character takes two bytes, and a property has at most 64 KiB.
    const { bags } = deploy(define(names(16)));
    const store = (count: number) =>
      toProperties(bags, Object.fromEntries(names(count).map((name) => [name, 'x'.repeat(32_768)])), {
        WriteId: 'w',
        Incarnation: 'i',
      });
    expect(Object.keys(store(15))).toContain('f14');
    expect(() => store(16)).toThrow(expect.objectContaining({ code: 'too-large' }));
  });

  test('whose long texts take more properties than a row can have is rejected', () => {
    const { bags } = deploy(
      defineEntity('bags', {
        schema: z.object({
          id: z.string(),
          text: z.string(),
          ...Object.fromEntries(names(238).map((name) => [name, z.string()])),
        }),
        table: 'bags',
        key: { partition: 'all', row: '{id}' },
        large: ['text'],
        access: { read: [], write: [] },
      }),
    );
    const fields = Object.fromEntries(names(238).map((name) => [name, 'x']));
    const store = (length: number) =>
      toProperties(bags, { id: '1', ...fields, text: 'x'.repeat(length) }, { WriteId: 'w', Incarnation: 'i' });
    expect(Object.keys(store(32_768))).toHaveLength(240 + 4);
    expect(() => store(32_769)).toThrow('takes 241 properties');
  });

  test('has room for every system property', () => {
    const system: Required<Omit<Internal['SystemProperties'], 'Carried'>> = {
      EntityType: 'bags',
      EntityVersion: 1,
      WriteId: 'w',
      Incarnation: 'i',
      DenormalizedTo: 'row',
      MovingFrom: 'address',
      Leaving: 'operation',
      Left: 'operation',
      FurtherRows: '{}',
    };
    const { bags } = deploy(define(names(239)));
    const fields = Object.fromEntries(names(239).map((name) => [name, 'x']));
    const row = toProperties(bags, { id: '1', ...fields }, system);
    // A write of an entity that refers to this one merges `TouchedBy`.
    expect(Object.keys({ ...row, TouchedBy: 'w' }).length).toBeLessThanOrEqual(252);
  });

  test('cannot be declared with more fields than a row can have', () => {
    expect(() => define(names(239))).not.toThrow();
    expect(() => define(names(240))).toThrow('more than 240 fields');
  });
});
