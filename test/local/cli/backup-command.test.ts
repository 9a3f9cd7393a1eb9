// @module-tag long

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createBackupCommand } from '../../../local/cli/backup-command.ts';
import { storageBlobs } from '../../kit/storage.ts';
import { model, openBackedUp } from '../../lib/operations/backup/backup-app.ts';

afterEach(() => {
  process.exitCode = undefined;
});

test('takes a snapshot, says what there is, and verifies what is new', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-backup-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const { engine, source, store } = await openBackedUp();
  const printed: string[] = [];
  const print = (line: unknown) => void printed.push(String(line));
  vi.spyOn(console, 'log').mockImplementation(print);
  vi.spyOn(console, 'error').mockImplementation(print);
  onTestFinished(() => void vi.restoreAllMocks());
  const run = async (...given: string[]) => {
    printed.length = 0;
    const program = createBackupCommand(async () => ({ engine, backup: source.backup, model, days: 7 }));
    await program.exitOverride().parseAsync([...given, '--data', folder], { from: 'user' });
    return printed.join('\n').replace(/[\d.]+ s\./, 'N s.');
  };
  expect(await run('status')).toBe(
    'The backup has no snapshot yet.\nThe timer takes the first snapshot within an hour of the deployment. To take the snapshot now, run npm run backup.',
  );
  await store.people.create({ team: 'ops', personId: '1', email: 'a@x', town: 'Bern' });
  const taken = await run();
  expect(taken).toMatch(
    /^Snapshot 20[\dTZ-]+[\da-f]{8}: 3 rows in 5 tables\.\n1 parts written \(\d+ bytes\), 0 as they were/,
  );
  expect(taken).toMatch(/\n0 blobs copied \(0 bytes\)\.\n\d+ storage transactions, N s\.$/);
  expect(await run()).toMatch(/\n0 parts written \(0 bytes\), 1 as they were \(of \d+ bytes in all\)\.\n/);
  expect(await run('status')).toMatch(
    /^Everything can be restored from 20\S+Z until 20\S+Z, with 2 snapshots\.\nThe last one, \S+, has 3 rows in 5 tables: 1 parts with \d+ bytes, and 0 blobs with 0 bytes\.\nIt took \d+ storage transactions and N s\.\nThe backup was never compared with its checksums\. To do so, run npm run backup -- verify\.\nTo restore to another place, run npm run restore -- --at <instant> --to <prefix>\.$/,
  );
  const verified = '2 snapshots: 1 of 1 parts and 1 of 1 blobs of the journal read, with 4 lines. 0 problems.';
  expect(await run('verify')).toBe(verified);
  expect(await run('status')).toMatch(
    /N s\.\nThe last verification, at 20\S+Z, found 0 problems\.\nTo restore to another place, run npm run restore -- --at <instant> --to <prefix>\.$/,
  );
  expect(await run('verify')).toBe(
    '2 snapshots: 0 of 1 parts and 0 of 1 blobs of the journal read, with 0 lines. 0 problems.',
  );
  expect(await run('verify', '--all')).toBe(verified);
  expect(process.exitCode).toBeUndefined();
  const [part = ''] = await storageBlobs.listBlobs(source.backup, { container: 'backup', prefix: 'parts/' });
  await source.backup.container('backup').deleteBlob(part);
  expect(await run('verify')).toContain(`${part}: it is missing.\n2 snapshots: `);
  expect(process.exitCode).toBe(1);
  expect(await run('status')).toMatch(
    /found 1 problems\.\nThe last verification found problems\. To list them, run npm run backup -- verify --all\.\nTo restore to another place, run npm run restore -- --at <instant> --to <prefix>\.$/,
  );
});
