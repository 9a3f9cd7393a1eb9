import { expect, test } from 'vitest';
import { PNG } from '../../../../local/walk/png.ts';
import { baseValues } from '../../../kit/base.ts';
import { httpDoor } from '../../../kit/http.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageBlobs } from '../../../kit/storage.ts';
import { testContext } from '../../http/request.ts';
import { model, openBackedUp } from './backup-app.ts';

const CONTAINER = 'backup';

test('says from when until when everything can be restored, and what the last snapshot took', async () => {
  const { engine: opened, storage, store, source } = await openBackedUp();
  const clock = { now: Date.now() };
  const engine = { ...opened, now: () => clock.now };
  const days = 7;
  const status = () => operationsBackup.readBackupStatus(engine, days);
  expect(await status()).toEqual({
    state: 'begins',
    restorableFrom: undefined,
    restorableUntil: undefined,
    snapshots: 0,
    last: undefined,
    waiting: { blobs: 0, bytes: 0, since: undefined },
    away: [],
    advice: [
      'The timer takes the first snapshot within an hour of the deployment. To take the snapshot now, run npm run backup.',
    ],
  });
  await store.people.create({ team: 'ops', personId: '1', email: 'a@x', town: 'Bern' });
  await store.people.files.photo.put({ team: 'ops', personId: '1' }, PNG);
  const first = await operationsBackup.takeSnapshot(engine, model.list, { days });
  clock.now += 3 * baseValues.DAY_MS;
  const second = await operationsBackup.takeSnapshot(engine, model.list, { days });
  const known = await status();
  const [manifest] = await Array.fromAsync(operationsBackup.readManifests(source));
  const parts = Object.values(manifest?.tables ?? {}).flatMap((table) => table.parts);
  expect(known).toMatchObject({
    restorableFrom: first.finishedAt,
    restorableUntil: new Date(clock.now).toISOString(),
    snapshots: 2,
    last: {
      id: second.id,
      finishedAt: second.finishedAt,
      tables: Object.keys(manifest?.tables ?? {}).length,
      // The entity, its copy of the index in the partition, and the list.
      rows: 3,
      parts: parts.length,
      bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
      took: { bytes: 0 },
      // The photo, and the audit log of the first day.
      blobs: { count: 2, bytes: expect.any(Number) },
    },
  });
  expect(known.last?.took?.transactions).toBeGreaterThan(5);
  expect(known.last?.took?.seconds).toBeGreaterThan(0);
  // Lines that only the account of the app has.
  const since = '2026-11-29T12:10:00.0000000Z';
  const at = { container: CONTAINER, name: 'journal/2026/11/29/1200/000001-app.ndjson' };
  await storageBlobs.createAppendBlob(storage, at, { metadata: { first: since } });
  await storageBlobs.appendBlock(storage, at, { bytes: Buffer.from('line\n'), position: 0 });
  expect(await status()).toMatchObject({ restorableUntil: since, waiting: { blobs: 1, bytes: 5, since } });
  const later = clock.now;
  clock.now = Date.parse(second.finishedAt ?? '') + 26 * baseValues.HOUR_MS;
  expect(await status()).toMatchObject({ state: 'fine' });
  clock.now += 1;
  expect(await status()).toMatchObject({
    state: 'overdue',
    advice: [
      'The last snapshot is older than 26 hours: the log of the timer "backup" says why. To take one now, run npm run backup.',
      `The account of the backup lacks changes since ${since}. The timer carries them there. To do so now, run npm run backup.`,
      'The backup was never compared with its checksums. To do so, run npm run backup -- verify.',
      'To restore to another place, run npm run restore -- --at <instant> --to <prefix>.',
    ],
  });
  clock.now = later;
  // The first snapshot is older than the retention.
  clock.now += 5 * baseValues.DAY_MS;
  expect(await status()).toMatchObject({ restorableFrom: second.finishedAt, snapshots: 1 });
});

test('names the account of the backup while it is away', async () => {
  const { engine, backupMemory, rowkey } = await openBackedUp();
  backupMemory.intercept = async (request) => ({ request, status: 503, headers: request.headers, bodyAsText: '' });
  const status = await operationsBackup.readBackupStatus(engine, 7);
  expect(status).toMatchObject({ state: 'unknown', away: ['backup'], snapshots: 0, advice: [] });
  const route = httpDoor.createRoutes(model).find(({ path }) => path === 'operations/backup');
  const result = await route?.handle(
    testContext(rowkey.runtime.app as never, {
      route,
      engine,
      caller: { subject: 'ann', roles: ['operator'], claims: {} },
    }),
  );
  expect(result).toMatchObject({ status: 200, body: { days: 7, snapshots: 0, away: ['backup'] } });
});
