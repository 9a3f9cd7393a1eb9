import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { operationsMove } from './kit/operations.ts';
import { storageToMove } from './lib/operations/storage-to-move.ts';
import { countTurns } from './patient-clock.ts';

countTurns();

function stall(milliseconds: number): void {
  for (const until = Date.now() + milliseconds; Date.now() < until; );
}

test('a process that gets no processor for longer than a hold keeps the hold', { tags: ['slow'] }, async () => {
  const { storage } = await storageToMove(1);
  const hold = await operationsMove.becomeMover(storage.accounts.list[0], { holdMs: 200, lateMs: 0 });
  for (let times = 0; times < 3; times += 1) {
    stall(300);
    hold.mayWrite();
    await sleep(20);
  }
  await hold.release();
});

test('time passes while the process waits', async () => {
  const before = performance.now();
  await expect.poll(() => performance.now() - before).toBeGreaterThan(50);
});
