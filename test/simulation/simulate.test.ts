import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { IS_EVERY_POINT } from '../points.ts';
import { LIMITED } from './models.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const WORLD = ['--import', './test/simulation/world/virtual-globals.ts', 'test/simulation/simulate.ts'];
const SEEDS = 50;
const RULED_SEEDS = 8;
/** Worlds of the same kinds, with fewer writes in each. */
const SIZE = IS_EVERY_POINT ? [] : ['--writes', '20'];

/** The output of a run of some seeds in one process, and the hash of each world in which everything agrees. */
async function simulate(seeds: string, ...more: readonly string[]) {
  const words = [...WORLD, '--jobs', '1', '--seeds', seeds, ...SIZE, ...more];
  const { stdout } = await run(process.execPath, words, { cwd: ROOT }).catch(
    (error: { stdout: string; stderr: string }) => ({ stdout: `${error.stdout}\n${error.stderr}` }),
  );
  const hashes = [...stdout.matchAll(/^seed (\d+):.* hash (\w+), 0 problems$/gm)];
  return { stdout, hashes: hashes.map(([, seed = '', hash = '']) => [Number(seed), hash] as const) };
}

// In processes of their own: the longest part of `npm test` leaves no processor idle.
test.concurrent('worlds of some seeds agree, and a seed gives the same requests in two processes', async () => {
  const half = SEEDS / 2;
  const [first, second] = await Promise.all([simulate(`1-${half}`), simulate(`${half + 1}-${SEEDS},1`)]);
  const seeds = [...first.hashes, ...second.hashes].map(([seed]) => seed);
  // The output says which events suffice for a failure.
  expect(seeds, first.stdout + second.stdout).toEqual([...Array.from({ length: SEEDS }, (_, at) => at + 1), 1]);
  expect(second.hashes.at(-1)).toEqual(first.hashes[0]);
  // Compare it with that of another machine.
  console.log(`The hash of seed ${first.hashes[0]?.join(' is ')}.`);
});

test.concurrent('worlds of some seeds agree whose users are limited by rules', async () => {
  const { stdout, hashes } = await simulate(`1-${RULED_SEEDS}`, '--model', LIMITED.model);
  expect(hashes, stdout).toHaveLength(RULED_SEEDS);
});
