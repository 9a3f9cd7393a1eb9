import { expect, test } from 'vitest';
import { entityError, RowkeyError } from '../../../lib/base/errors.ts';

const employees = { name: 'employees', keyFields: ['department', 'employeeId'] };
const ann = { department: 'Sales', employeeId: '000123', email: 'ann@contoso.com' };

test('names an entity by its key in the response only, and leaves the key out of the logged message', () => {
  const { message, detail } = entityError('not-found', employees, ann, 'not found.');
  expect(detail).toBe('employees "Sales/000123" not found.');
  expect(message).toBe('employees "…" not found.');
});

test('names an entity without a known key by the values of the request', () => {
  const { message, detail } = entityError('not-found', employees, { email: ann.email }, 'not found.');
  expect(detail).toBe('employees with email "ann@contoso.com" not found.');
  expect(message).not.toContain(ann.email);
});

test('escapes quotes, control characters and lone surrogates of a key', () => {
  const { detail } = entityError('not-found', employees, { department: '"\n', employeeId: '\ud800' }, 'not found.');
  expect(detail).toBe(String.raw`employees "\"\n/\ud800" not found.`);
});

test('has its fields and its cause directly, and lists only those that are given', () => {
  const cause = new Error('lost');
  const error = new RowkeyError('busy', 'Try again.', { cause, field: 'key', retryAfter: 1 });
  expect(error).toMatchObject({ name: 'RowkeyError', message: 'Try again.', cause });
  expect({ ...error }).toEqual({ name: 'RowkeyError', code: 'busy', field: 'key', retryAfter: 1 });
  expect(Object.keys(error)).not.toContain('etag');
});
