import { expect, test, vi } from 'vitest';
import { toStoredEntity } from '../../../local/cli/stored-entity.ts';

vi.mock('../../../local/instance/deployed-app.ts', () => import('../../fixtures/deployed-app.ts'));

test.each([
  ['doorminutes', '"doorminutes" is a data series: its counts cannot be imported or exported.'],
  ['formeremployees', '"formeremployees" is the archive of employees: it cannot be imported or exported.'],
  ['robots', 'Entity "robots" not found; accepted are departments, employees,'],
])('rejects %s with the reason', (name, reason) => {
  expect(() => toStoredEntity(name)).toThrow(reason);
});

test('returns an entity with rows', () => {
  expect(toStoredEntity('employees').name).toBe('employees');
});
