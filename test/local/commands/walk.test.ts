import { expect, test } from 'vitest';
import { runCommand } from '../../start-process.ts';

test('walks over the model of a file', async () => {
  const { code, said } = await runCommand('walk', [
    '--model',
    'test/fixtures/relations.ts',
    '--seed',
    '1',
    '--writes',
    '30',
  ]);
  expect([code, said]).toEqual([
    0,
    expect.stringMatching(
      / (members|teams) create: .*\nSeed 1: 30 steps in 3 rounds, \S+ minutes\.\nEvery answer agrees\.\n$/s,
    ),
  ]);
});

test('rejects a file without a model, and a seed that is no number', async () => {
  const { code, said } = await runCommand('walk', ['--model', 'test/points.ts']);
  expect([code, said]).toEqual([1, expect.stringContaining('test/points.ts exports neither a "model"')]);
  const other = await runCommand('walk', ['--seed', 'x']);
  expect([other.code, other.said]).toEqual([1, expect.stringContaining('A whole number from 0 is needed.')]);
});
