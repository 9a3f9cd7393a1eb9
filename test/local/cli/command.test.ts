import { expect, test } from 'vitest';
import { RowkeyError } from '../../../lib/index.ts';
import { formatError } from '../../../local/cli/command.ts';

test('says what is accepted after why a command has failed', () => {
  const options = { accepted: 'first, second' };
  expect(formatError(new RowkeyError('invalid-input', 'Storage account "fifth" not found.', options))).toBe(
    'Storage account "fifth" not found. Accepted: first, second.',
  );
  expect(formatError(new RowkeyError('busy', 'Slots are moving.'))).toBe('Slots are moving.');
});
