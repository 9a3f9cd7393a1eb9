import { expect, test } from 'vitest';
import {
  incomparableFields,
  isPast,
  type Kind,
  listKinds,
  rowPath,
  upgradeRow,
  writePath,
} from '../../../../local/cli/everything/kinds.ts';
import { model as first } from '../../../everything/model.ts';
import { model as next } from '../../../everything/next-model.ts';
import { model } from '../../../fixtures/model.ts';

const kinds = listKinds(model);
const kindOf = (name: string, all: readonly Kind[] = kinds) => all.find((kind) => kind.name === name) as Kind;

test.each([
  ['as they are declared', model.list],
  ['in the other order', model.list.toReversed()],
])(
  'of entities %s, every kind is after those that its rows need, and archives are last, with their children',
  (_, list) => {
    const names = listKinds({ list }).map(({ name }) => name);
    const before = (one: string, other: string) =>
      expect(names.indexOf(one), `${one}, ${other}`).toBeLessThan(names.indexOf(other));
    before('employees', 'reviews');
    before('employees', 'departments');
    before('customers', 'orders');
    before('inspections', 'formeremployees');
    before('formeremployees', 'formeremployees/reviews');
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining(model.list.map(({ name }) => name)));
  },
);

test('rows of archives are written and read by routes of the operator, and others by those of the entity', () => {
  const key = { department: 'a/b', employeeId: '000001', year: 2_001 };
  expect(writePath('/api', kindOf('employees'))).toBe('/api/employees/batch');
  expect(writePath('/api', kindOf('formeremployees/reviews'))).toBe('/api/operations/import/formeremployees/reviews');
  expect(rowPath('/api', kindOf('employees'), key)).toBe('/api/employees/a%2Fb/000001');
  expect(rowPath('/api', kindOf('formeremployees'), key)).toBe('/api/operations/files/formeremployees/a%2Fb/000001');
});

test('a row is past retention after the last day that its entity keeps', () => {
  const at = (days: number) => ({ at: new Date(Date.now() - days * 86_400_000).toISOString() });
  expect(isPast(kindOf('logins').entity, at(70))).toBe(true);
  expect(isPast(kindOf('logins').entity, at(50))).toBe(false);
  expect(isPast(kindOf('employees').entity, at(70))).toBe(false);
});

test('a row of an earlier version is upgraded, and fields with another default in each row are not compared', () => {
  const [tasks] = listKinds(next);
  const row = { list: 'a', taskId: '1', title: 'Call', $files: { photo: 1 } };
  expect(upgradeRow(tasks as Kind, row, 1)).toEqual({ list: 'a', taskId: '1', label: 'Call!', $files: { photo: 1 } });
  expect(upgradeRow(tasks as Kind, row, 2)).toEqual(row);
  const former = Object.keys(kindOf('tasks', listKinds(first)).entity.columns);
  // "priority" has a constant, "note" and "label" have none.
  expect(incomparableFields(tasks as Kind, former)).toEqual(['ref']);
  expect(incomparableFields(tasks as Kind, [...former, 'ref'])).toEqual([]);
});
