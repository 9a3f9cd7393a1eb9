import { describe, expect, test } from 'vitest';
import { describeModel } from '../../lib/http/routes/model-route.ts';
import { toModel } from '../../web/src/api/model.ts';
import type { ModelDescription } from '../../web/src/api/model-description.ts';
import {
  findProblems,
  formFields,
  parseField,
  toPatch,
  toTexts,
  toUndo,
  toValues,
} from '../../web/src/forms/fields.ts';
import { model as declared } from '../fixtures/model.ts';

// The types of the console are those of the route: this assignment does not compile otherwise.
const described: ModelDescription = describeModel(declared);
const model = toModel(described);
const HR = { roles: ['hr'] };

function entity(name: string) {
  const found = model.entities.get(name);
  if (!found) throw new Error(name);
  return found;
}
const fieldOf = (name: string, field: string, user = HR) => {
  const found = formFields(entity(name), user, 'create').find((one) => one.name === field);
  if (!found) throw new Error(field);
  return found;
};

describe('the fields of a form', () => {
  test('leave out what cannot be written: kept, derived and restricted fields, and the key of a change', () => {
    const names = (name: string, purpose: 'create' | 'change', roles = ['hr']) =>
      formFields(entity(name), { roles }, purpose).map((field) => field.name);
    expect(names('departments', 'create')).toEqual(['department', 'description', 'managerId']);
    expect(names('departments', 'change')).toEqual(['description', 'managerId']);
    expect(names('movies', 'create')).toEqual(['title', 'year', 'genres', 'cast']);
    expect(names('employees', 'create', ['reader'])).not.toContain('nationalId');
    expect(names('employees', 'create')).not.toContain('photo');
  });

  test('begin with the kind of an entity of several kinds', () => {
    const [first] = formFields(entity('people'), HR, 'create');
    expect(first).toMatchObject({ name: 'kind', input: 'choice', isRequired: true });
  });

  test('need no value for a generated field of a new row', () => {
    expect(fieldOf('expenses', 'at')).toMatchObject({ isRequired: false, note: 'key, generated if empty' });
    expect(fieldOf('expenses', 'amount').isRequired).toBe(true);
  });

  test('offer the values of an enumeration, of a Boolean and of a union of constants', () => {
    const texts = (name: string, field: string) => fieldOf(name, field).choices.map(({ text }) => text);
    expect(texts('people', 'kind')).toEqual(['employee', 'customer']);
    expect(texts('logins', 'succeeded')).toEqual(['true', 'false']);
    expect(texts('products', 'discontinued')).toEqual(['0', '1']);
    expect(parseField(fieldOf('products', 'discontinued'), '1')).toEqual({ value: 1 });
    expect(parseField(fieldOf('logins', 'succeeded'), 'false')).toEqual({ value: false });
  });
});

test.each([
  ['employees', 'age', '', { value: undefined }],
  ['employees', 'age', '44', { value: 44 }],
  ['employees', 'age', 'old', { problem: 'must be a number' }],
  ['employees', 'age', ' 44 ', { value: 44 }],
  ['employees', 'age', '   ', { problem: 'must be a number' }],
  ['employees', 'age', '0x10', { problem: 'must be a number' }],
  ['employees', 'age', 'Infinity', { problem: 'must be a number' }],
  ['employees', 'age', '9007199254740993', { problem: 'must be from -9007199254740991 to 9007199254740991' }],
  ['employees', 'age', '4.5', { problem: 'must be a whole number' }],
  ['employees', 'age', '151', { problem: 'must be at most 150' }],
  ['employees', 'firstName', '', { problem: 'is required' }],
  ['employees', 'phone', 'x'.repeat(41), { problem: 'must have at most 40 characters' }],
  ['employees', 'employeeId', '12', { problem: 'must match ^\\d{6}$' }],
  ['employees', 'hireDate', '2026-02-30', { problem: 'must be a date, such as 2026-11-20' }],
  ['employees', 'email', 'nope', { problem: 'must be an email address' }],
  ['employees', 'email', 'a b@contoso.com', { problem: 'must be an email address' }],
  ['employees', 'email', 'josé@bücher.example', { value: 'josé@bücher.example' }],
  ['people', 'email', 'nobody', { problem: 'must be an email address' }],
  ['movies', 'cast', '["A"]', { value: ['A'] }],
  ['movies', 'cast', '["A"', { problem: 'must be JSON' }],
  ['movies', 'cast', '{}', { problem: 'must be of the type array' }],
])('a text of %s.%s is parsed and checked: %j', (name, field, text, parsed) => {
  expect(parseField(fieldOf(name, field), text)).toEqual(parsed);
});

test('leaves a pattern to the API that is not valid with the flag u', () => {
  const schema = { type: 'string', pattern: String.raw`^\d{3}\-\d{4}$` };
  expect(parseField({ ...fieldOf('employees', 'phone'), schema }, 'x')).toEqual({ value: 'x' });
});

test('a change sends the changed fields only, null for a removed one, and can be undone', () => {
  const fields = formFields(entity('employees'), HR, 'change');
  const before = { jobTitle: 'Clerk', phone: '555', age: 44, email: 'a@contoso.com', firstName: 'A', lastName: 'B' };
  const texts = { ...toTexts(fields, before), jobTitle: 'Buyer', phone: '', vacationHours: '8' };
  expect(findProblems(fields, texts)).toEqual({});
  const patch = toPatch(fields, toTexts(fields, before), texts);
  expect(patch).toEqual({ jobTitle: 'Buyer', phone: null, vacationHours: 8 });
  expect(toUndo(patch, before)).toEqual({ jobTitle: 'Clerk', phone: '555', vacationHours: null });
  expect(toValues(fields, texts)).toMatchObject({ jobTitle: 'Buyer', age: 44, vacationHours: 8 });
  expect(toValues(fields, texts)).not.toHaveProperty('phone');
});
