import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineUnion } from '../../../lib/define/inheritance.ts';
import { validate } from '../../../lib/define/validate/validation.ts';
import { deploy } from '../../fixtures/deploy.ts';

const { things } = deploy(
  defineUnion('things', {
    schema: z.object({ shelf: z.string(), id: z.string(), note: z.string().default('none') }),
    kinds: { tool: z.object({ level: z.int32().default(1) }), toy: z.object({ colour: z.string().toLowerCase() }) },
    table: 'things',
    key: { partition: '{shelf}', row: '{id}' },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

test('gives an entity the defaults of its own kind and of the shared fields only', () => {
  const key = { shelf: 's', id: '1' };
  const toy = { ...key, kind: 'toy', colour: 'red', note: 'none' };
  expect(validate(things, { ...key, kind: 'toy', colour: 'Red' })).toEqual(toy);
  expect(validate(things, { ...key, kind: 'tool' })).toEqual({ ...key, kind: 'tool', level: 1, note: 'none' });
  expect(() => validate(things, { ...toy, level: 2 })).toThrow('level');
});
