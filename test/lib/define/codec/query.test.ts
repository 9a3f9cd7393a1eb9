import { expect, test } from 'vitest';
import { compileFilter, toSelection } from '../../../../lib/define/codec/query.ts';
import { model } from '../../../fixtures/model.ts';

const { employees } = model.entities;
const entity = model.list.find(({ name }) => name === employees.name) ?? model.list[0];

test('selects a field once, however often a caller names it', () => {
  if (!entity) throw new Error('The model has no entity.');
  const names = Array.from({ length: 200_000 }, (_, index) => (index % 2 ? 'age' : 'email'));
  expect(toSelection(entity, names)).toEqual({ employees: ['email', 'age'] });
});

test.each([[[]], [{}], [[1]]])('refuses the condition %j, which would match every entity', (condition) => {
  if (!entity) throw new Error('The model has no entity.');
  expect(() => compileFilter(entity, { age: condition } as never)).toThrow('the field has no operator');
});
