import { expect, test } from 'vitest';
import { explore, RULES, type Rule } from './transfer-rules.ts';

test.each([
  [1, true],
  [1, false],
  [2, true],
  [2, false],
] as const)('an operation takes only what the rules allow: %i consumers, limited: %s', (consumers, isLimited) => {
  expect(explore(consumers, { isLimited })).toEqual({ states: expect.any(Number), isComplete: true });
});

test.each(Object.entries(RULES).map(([rule, what]) => [what, rule as Rule] as const))(
  'an operation takes what the rules refuse, or fails without need, if %s',
  (_, rule) => {
    const find = (isLimited: boolean) => explore(2, { isLimited, broken: rule }).violation;
    expect(find(true) ?? find(false)).toBeDefined();
  },
);
