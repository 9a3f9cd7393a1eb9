import { describe, expect, test } from 'vitest';
import { checkName } from '../../../local/packs/check-name.ts';

describe('the name of the first entity', () => {
  test.each([
    ['constructor', /the entity name "constructor" is a member of every JavaScript object/],
    ['operations', /the API itself has a route \/api\/operations/],
    ['query', /the API itself has a route/],
    ['system', /the table name "system" is reserved/],
    ['azurefunctionslogs', /is reserved for the Functions host/],
    ['class', /Unexpected|reserved|class/],
    ['crypto', /"crypto" is a global of JavaScript/],
    ['undefined', /is a global of JavaScript/],
    ['escape', /is a global of JavaScript/],
    ['a'.repeat(50), /Use 3 to 55 lower-case letters/],
  ])('%s is rejected with the reason', async (name, reason) => {
    const { message } = await checkName(name).then(
      () => new Error('accepted'),
      (error: Error) => error,
    );
    expect(message).toMatch(/^The name ".*" cannot be used, and nothing was changed: /);
    expect(message.replace(/^.*nothing was changed: /, '')).toMatch(reason);
  });

  test.each(['notes', 'admin', 'zzz', 'runtime', 'then', 'a'.repeat(48)])('%s is accepted', async (name) => {
    await checkName(name);
  });
});
