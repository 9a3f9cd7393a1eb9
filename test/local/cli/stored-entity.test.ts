import { expect, test } from 'vitest';
import { toStoredEntity } from '../../../local/cli/stored-entity.ts';
import { model } from '../../fixtures/model.ts';

test.each([
  [
    'doorminutes',
    '"doorminutes" is a data series: its counts cannot be imported or exported by itself, but with --all.',
  ],
  [
    'formeremployees',
    '"formeremployees" is the archive of employees: it cannot be imported or exported by itself, but with --all.',
  ],
  ['robots', 'Entity "robots" not found; accepted are departments, employees,'],
])('rejects %s with the reason', (name, reason) => {
  expect(() => toStoredEntity(model, name)).toThrow(reason);
});

test('returns an entity with rows', () => {
  expect(toStoredEntity(model, 'employees').name).toBe('employees');
});
