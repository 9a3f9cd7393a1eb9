import { expect, test } from 'vitest';
import { explore, RULES, type Rule } from './copies.ts';

test.each(['a', 'command'] as const)(
  'no copy says another model than the record: two starts beside a third actor, %s',
  { tags: ['slow'] },
  (third) => {
    expect(explore(third)).toEqual({ states: expect.any(Number), isComplete: true });
  },
);

test.each(Object.entries(RULES).map(([rule, what]) => [what, rule as Rule] as const))(
  'a copy says another model than the record if %s',
  { tags: ['slow'] },
  (_, rule) => {
    const found = ['command' as const, 'a' as const].map((third) => explore(third, { broken: rule }).violation);
    expect(found).toContain('a copy says a model that the record does not have');
  },
);
