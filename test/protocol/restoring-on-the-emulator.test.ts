import { expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { dump, PLAIN_KEYS } from '../backed-up.ts';
import { employees, model, reviews, sales } from '../fixtures/model.ts';
import { apiCalls } from '../kit/api.ts';
import { engineCore, engineRead, engineWrite } from '../kit/engine.ts';
import { featureFiles } from '../kit/features.ts';
import { operationsBackup, operationsModel } from '../kit/operations.ts';
import { type Storage, storageAccounts, storageJournal, storageRows, storageTables } from '../kit/storage.ts';
import { testStorage } from '../storage.ts';
import { somebody } from '../world.ts';

test('values of each type, files and texts are restored as storage had them', { tags: ['slow'] }, async () => {
  const connectionString = testStorage(import.meta.url);
  const entities = model.list;
  const backup = storageAccounts.openStorage({ accounts: [{ name: 'backup', connectionString }] }, 'bk');
  const plain = storageAccounts.openStorage({ connectionString }, 'shop');
  const journal = operationsBackup.createJournal({ backup, storage: plain }, entities);
  const storage: Storage = { ...plain, backup, journal };
  const resources = operationsModel.resourcesOf(entities, Date.now(), model);
  await storageTables.provision(storage, { ...resources, containers: [...resources.containers, 'backup'] });
  const engine = engineCore.createEngine(storage, { keys: PLAIN_KEYS });
  const one = somebody({ department: 'Ops', nationalId: 'secret', vacationHours: 7, jobTitle: 'Manager' });
  await engineWrite.createEntity(engine, employees, one);
  const { department, employeeId } = one;
  const review = { department, employeeId, year: 2026, rating: 4, comments: 'x'.repeat(400_000) };
  await engineWrite.createEntity(engine, reviews, review);
  const photo = { entity: employees, key: one, field: 'photo' };
  await featureFiles.putAttachment(engine, photo, PNG);
  await engineWrite.createEntity(engine, sales, {
    branch: 'Porto',
    saleId: 'S000001',
    soldOn: '2026-11-01',
    amount: 5,
  });
  const properties = {
    EntityType: 'people',
    EntityVersion: 2,
    WriteId: 'w',
    Text: 'a\n"ü\u2028😀',
    Whole: { type: 'Double', value: '5.0' },
    Small: { type: 'Double', value: '1e-7' },
    Big: { type: 'Int64', value: '9007199254740993' },
    Id: { type: 'Guid', value: '01234567-89ab-cdef-0123-456789abcdef' },
    At: { type: 'DateTime', value: '2026-11-29T12:51:09.1234567Z' },
    Bytes: { type: 'Binary', value: 'AAEC' },
  };
  const insert = { kind: 'insert', row: 'any', properties } as const;
  await storageRows.submit(storage, { table: 'people', partition: 'PT', actions: [insert] });
  await operationsBackup.takeSnapshot(engine, entities, { days: 35 });
  // Only in the journal.
  await storageRows.submit(storage, { table: 'people', partition: 'PT', actions: [{ ...insert, row: 'later' }] });
  await operationsBackup.copyToBackup(engine, entities, { days: 35 });
  const { value: manifest } = await operationsBackup.readManifests({ backup }).next();
  // Later than the snapshot and each change, however slow the machine is.
  const now = storageJournal.toTime(Date.now() + 1_000) ?? '';
  const at = [manifest?.finishedAt ?? '', now].toSorted().at(-1) ?? '';
  const target = storageAccounts.openStorage({ connectionString }, 'restored');
  const restored = engineCore.createEngine(target, { keys: PLAIN_KEYS });
  const report = await operationsBackup.restoreBackup(restored, model, {
    source: { backup, storage },
    at,
    erase: (of, subject) => apiCalls.eraseAll(of, model, subject),
  });
  expect(report.findings).toEqual([]);
  expect(report.tables?.filter(({ isEqual }) => !isEqual)).toEqual([]);
  expect(report.blobs?.missing).toEqual([]);
  expect(await dump(target)).toEqual(await dump(plain));
  const { values } = await engineRead.readEntity(restored, reviews, { department, employeeId, year: 2026 });
  expect((await engineWrite.toPlain(restored, reviews, values)).comments).toBe(review.comments);
  const found = await featureFiles.describeAttachment(restored, photo);
  expect(await featureFiles.readAttachment(restored, photo, found)).toEqual(PNG);
});
