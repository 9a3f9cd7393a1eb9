import { expect, test } from 'vitest';
import { requireRole } from '../../../lib/access/rule.ts';

test('requires at least one of the listed roles', () => {
  const caller = { roles: ['reader'] };
  expect(() => requireRole(caller, ['hr', 'reader'])).not.toThrow();
  expect(() => requireRole(caller, ['hr', 'operator'])).toThrow(
    expect.objectContaining({
      code: 'forbidden',
      message: 'The request requires one of these roles: hr, operator; the token has none of them.',
    }),
  );
  expect(() => requireRole(caller, [])).toThrow(expect.objectContaining({ code: 'forbidden' }));
});
