import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define.ts';

const declaration = {
  schema: z.object({ depot: z.string(), vehicleId: z.string(), model: z.string() }),
  table: 'vehicles',
  key: { partition: '{depot}', row: '{vehicleId}' },
  access: { read: ['reader'], write: ['reader'] },
} as const;

test('reports the entity and the field of a type that JSON does not have', () => {
  const schema = declaration.schema.extend({ boughtOn: z.date() });
  expect(() => defineEntity('vehicles', { ...declaration, schema })).toThrow(
    /^Entity "vehicles": the field "boughtOn" has a type that JSON does not have: .*z\.iso\.date\(\)/,
  );
});

test('reports the entity of a key template that cannot be parsed', () => {
  const key = { partition: '{depot', row: '{vehicleId}' } as const;
  expect(() => defineEntity('vehicles', { ...declaration, key })).toThrow(/^Entity "vehicles": .*\{depot has a brace/);
});

test('rejects a restricted field that the schema does not have', () => {
  const access = { ...declaration.access, restricted: { modle: ['reader'] } };
  // @ts-expect-error The compiler rejects this name too; npm start runs no compiler.
  expect(() => defineEntity('vehicles', { ...declaration, access })).toThrow(
    'access.restricted names the field "modle"',
  );
});
