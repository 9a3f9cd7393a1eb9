import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define.ts';
import { isSnapshotDue } from '../../../../lib/operations/backup/run-backup.ts';
import { createMemoryStorage } from '../../../../lib/testing/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineCore } from '../../../kit/engine.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../../kit/storage.ts';
import { countedMetrics } from '../../../metrics.ts';

const { things } = deploy(
  defineEntity('things', {
    schema: z.object({ place: z.string(), id: z.string() }),
    table: 'things',
    key: { partition: '{place}', row: '{id}' },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

test.each([
  ['none', '2026-11-29T20:00:00Z', undefined, true],
  ['that of today', '2026-11-29T20:00:00Z', '2026-11-29T02:00:30.0000000Z', false],
  ['that of today, before midnight', '2026-11-29T23:59:59Z', '2026-11-29T02:00:30.0000000Z', false],
  ['that of yesterday, after midnight', '2026-11-30T01:59:59Z', '2026-11-29T02:00:30.0000000Z', false],
  ['that of yesterday, at two', '2026-11-30T02:00:00Z', '2026-11-29T02:00:30.0000000Z', true],
  ['that of yesterday, later', '2026-11-30T09:00:00Z', '2026-11-29T15:00:00.0000000Z', true],
])('a snapshot is due unless there is that of the day: %s', (_, now, finishedAt, isDue) => {
  expect(isSnapshotDue(Date.parse(now), finishedAt)).toBe(isDue);
});

test('takes the first snapshot at once, then one a day, and copies blobs in each hour', async () => {
  const grown = countedMetrics();
  const backup = storageAccounts.openStorage({
    accounts: [{ ...createMemoryStorage({ account: 'backup' }), name: 'backup' }],
  });
  const clock = { now: Date.parse('2026-11-29T12:00:00Z') };
  // The clock of storage is that of the test.
  const memory = createMemoryStorage({ now: () => clock.now });
  const storage = { ...storageAccounts.openStorage(memory), backup };
  const resources = { tables: ['things', 'system', 'operations'], queues: [], containers: ['large', 'audit'] };
  await storageTables.provision(storage, resources);
  const engine = engineCore.createEngine(storage, { now: () => clock.now });
  const run = async (until?: number) => {
    const { snapshot, copies } = await operationsBackup.runBackup(engine, [things], { days: 35, until });
    const [age] = await grown('rowkey.backup.age');
    return [snapshot?.isComplete, copies?.isComplete, age?.much];
  };
  expect(await run(clock.now)).toEqual([false, undefined, undefined]);
  expect(await run()).toEqual([true, true, 1]);
  for (let hour = 1; hour < 14; hour += 1) {
    clock.now += baseValues.HOUR_MS;
    expect(await run(), `${hour} hours later`).toEqual([undefined, true, 1]);
  }
  clock.now += baseValues.HOUR_MS;
  expect(await run()).toEqual([true, true, 1]);
});
