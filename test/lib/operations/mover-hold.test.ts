import { setImmediate } from 'node:timers/promises';
import { RestError } from '@azure/core-rest-pipeline';
import { expect, test, vi } from 'vitest';
import { becomeMover } from '../../../lib/operations/mover-hold.ts';
import { operationsMove } from '../../kit/operations.ts';
import { PATIENCE_MS } from '../../patience.ts';
import { countTurns } from '../../patient-clock.ts';
import { quick, storageToMove } from './storage-to-move.ts';

countTurns();

test('has one mover at a time', { tags: ['slow'] }, async () => {
  const { open, slots } = await storageToMove(4);
  const [one, other] = [slots.slice(0, 2), slots.slice(2)];
  const reports = await Promise.all([
    operationsMove.moveSlots(open(), [{ slots: one, to: 'second' }], quick),
    operationsMove.moveSlots(open(), [{ slots: other, to: 'second' }], quick),
  ]);
  expect(reports.map((report) => report.slots)).toEqual([one.length, other.length]);
});

test('lets a mover write no longer than its hold', async () => {
  const { storage } = await storageToMove(1);
  const [first] = storage.accounts.list;
  const hold = await becomeMover(first, { holdMs: 100, lateMs: 0 });
  hold.mayWrite();
  hold.stop();
  await vi.waitFor(() => expect(() => hold.mayWrite()).toThrow('Another mover of slots has taken over'), PATIENCE_MS);
});

test('counts the hold of a mover from the write that changed its row, if the reading of that write failed', async () => {
  const { storage, memoryOf } = await storageToMove(1);
  const [first] = storage.accounts.list;
  vi.useFakeTimers({ toFake: ['setInterval', 'performance'] });
  try {
    const hold = await becomeMover(first, { holdMs: 500, lateMs: 0 });
    const memory = memoryOf('first');
    let renewals = 0;
    let reads = 0;
    memory.intercept = async (request, send) => {
      if (request.method === 'PUT') renewals += 1;
      if (request.method === 'GET' && renewals === 1) {
        reads += 1;
        throw new RestError('away', { statusCode: 400, request });
      }
      const reply = await send();
      if (request.method === 'GET') reads += 1;
      return reply;
    };
    for (const renewal of [1, 2]) {
      vi.advanceTimersByTime(100);
      while (renewals < renewal || reads < renewal) await setImmediate();
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    }
    hold.stop();
    vi.advanceTimersByTime(350);
    hold.mayWrite();
    vi.advanceTimersByTime(100);
    expect(() => hold.mayWrite()).toThrow('Another mover of slots has taken over');
  } finally {
    vi.useRealTimers();
  }
});
