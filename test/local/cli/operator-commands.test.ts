import { expect, test } from 'vitest';
import { formatCleanUp } from '../../../local/cli/operator-commands.ts';

test('says how an index was cleaned up', () => {
  expect(formatCleanUp('plate', { checked: 0, repaired: 0 })).toBe(
    'The former index plate is cleaned up: its table was dropped, or has no rows.',
  );
  expect(formatCleanUp('plate', { checked: 9, repaired: 2 })).toBe(
    '9 rows checked: 2 rows of the former index plate deleted.',
  );
});
