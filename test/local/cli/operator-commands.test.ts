import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createRekeyCommand, formatCleanUp } from '../../../local/cli/operator-commands.ts';

test('says how an index was cleaned up', () => {
  expect(formatCleanUp('plate', { checked: 0, repaired: 0 })).toBe(
    'The former index plate is cleaned up: its table was dropped, or has no rows.',
  );
  expect(formatCleanUp('plate', { checked: 9, repaired: 2 })).toBe(
    '9 rows checked: 2 rows of the former index plate deleted.',
  );
});

test('prints the entities that could not be moved to another key, and counts the others', async () => {
  const found = { kind: 'unreachable', of: 'films', table: 'films', partition: 'Comedy' };
  const findings = [
    { ...found, row: 'moved', repaired: true },
    { ...found, row: 'left', reason: 'The year is missing', repaired: false },
  ];
  vi.stubGlobal('fetch', async () => Response.json({ checked: 2, findings }));
  const data = await mkdtemp(join(tmpdir(), 'rekey-'));
  onTestFinished(async () => {
    process.exitCode = undefined;
    vi.unstubAllGlobals();
    await rm(data, { recursive: true });
  });
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {});
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  const command = ['films', '--url', 'https://unused.invalid', '--token', 'x', '--data', data];
  await createRekeyCommand().parseAsync(command, { from: 'user' });
  expect(printed.mock.calls).toEqual([['2 rows read: 1 of 2 entities moved.']]);
  expect(said.mock.calls).toEqual([['unreachable: films of films/Comedy/left: The year is missing']]);
  expect(process.exitCode).toBe(1);
});
