// @module-tag long

import { expect, test } from 'vitest';
import { drillBackup } from '../../../../lib/operations/backup/drill.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageRows, storageTables } from '../../../kit/storage.ts';
import { model, openBackedUp, writeEmptySnapshot } from './backup-app.ts';

async function openDrill() {
  const app = await openBackedUp();
  await writeEmptySnapshot(app);
  for (const noteId of ['1', '2']) await app.store.notes.put({ pad: 'p', noteId }, { text: 'x', weight: 5 });
  await app.store.people.create({ team: 'ops', personId: '1', email: 'a@x', town: 'Bern' });
  const scratch = app.rowkey.runtime.withPrefix('drill');
  return { ...app, scratch, drill: () => drillBackup(app.engine, scratch) };
}

test('restores what was written after the last snapshot, compares it, and drops what it restored', async () => {
  const { drill, engine, scratch } = await openDrill();
  // What an earlier drill left that was killed.
  await storageTables.createTable(scratch, 'notes');
  const report = await drill();
  expect(report).toMatchObject({ partitions: 2, differences: [] });
  expect(report.rows).toBeGreaterThan(2);
  expect(await storageTables.listTables(scratch, '')).toEqual([]);
  const { drill: last } = await operationsBackup.readBackupStatus(engine, 7);
  expect(last).toEqual({ at: report.at, partitions: 2, rows: report.rows, differences: 0 });
  expect(model.list.map(({ table }) => table)).toContain('notes');
});

test('tells a row that was changed behind the back of the app', async () => {
  const { drill, engine, storage, store } = await openDrill();
  const { journal: _, ...behind } = storage;
  const change = { kind: 'merge', row: '1', properties: { text: 'changed' }, etag: '*' } as const;
  await storageRows.submit(behind, { table: 'notes', partition: 'p', actions: [change] });
  const { differences } = await drill();
  expect(differences).toEqual(['The backup of a partition of notes is not what is stored.']);
  const status = await operationsBackup.readBackupStatus(engine, 7);
  expect(status).toMatchObject({ drill: { differences: 1 } });
  expect(status.advice[0]).toMatch(/^The last drill found differences: .* run npm run backup -- verify --all\.$/);
  expect((await store.notes.get({ pad: 'p', noteId: '1' }))?.values.text).toBe('changed');
});
