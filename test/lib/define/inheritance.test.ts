import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineUnion } from '../../../lib/define/inheritance.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { reservations } from '../../fixtures/model.ts';
import { defineCodec } from '../../kit/define.ts';

const { things } = deploy(
  defineUnion('things', {
    schema: z.object({ shelf: z.string(), id: z.string(), note: z.string().default('none') }),
    kinds: { tool: z.object({ level: z.int32().default(1) }), toy: z.object({ colour: z.string().toLowerCase() }) },
    table: 'things',
    key: { partition: '{shelf}', row: '{id}' },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

test('accepts an entity without the required fields that the engine sets', () => {
  const input = { office: 'Oslo', reservationId: 'A1', kind: 'desk', storey: 2 };
  expect(defineCodec.validate(reservations, input)).toEqual(input);
  expect(() => defineCodec.validate(reservations, { ...input, changedOn: '2026-11-20' })).toThrow('changedOn');
  expect(() => defineCodec.validate(reservations, { ...input, seats: 3 })).toThrow('seats');
  expect(() => defineCodec.validate(reservations, { office: 'Oslo', reservationId: 'A1', kind: 'desk' })).toThrow(
    'storey',
  );
});

test('gives an entity the defaults of its own kind and of the shared fields only', () => {
  const key = { shelf: 's', id: '1' };
  const toy = { ...key, kind: 'toy', colour: 'red', note: 'none' };
  expect(defineCodec.validate(things, { ...key, kind: 'toy', colour: 'Red' })).toEqual(toy);
  expect(defineCodec.validate(things, { ...key, kind: 'tool' })).toEqual({
    ...key,
    kind: 'tool',
    level: 1,
    note: 'none',
  });
  expect(() => defineCodec.validate(things, { ...toy, level: 2 })).toThrow('level');
});
