import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pMap from 'p-map';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { collectOrphans } from '../../../lib/operations/collect-orphans.ts';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { PNG } from '../../../local/walk/png.ts';
import { createQueueWorker } from '../../../local/walk/queue-worker.ts';
import { collectAllOrphans } from '../../collect-all-orphans.ts';
import { costOf } from '../../cost-of.ts';
import { doorminutes, employees, model, reviews } from '../../fixtures/model.ts';
import { baseValues } from '../../kit/base.ts';
import { type Engine, engineCore, engineRead, engineTransfer, engineWrite } from '../../kit/engine.ts';
import { featureFiles, featureSeries } from '../../kit/features.ts';
import { operationsBackup, operationsModel } from '../../kit/operations.ts';
import { type Storage, storageAccounts, storageBlobs, storageRows, storageTables } from '../../kit/storage.ts';
import { IS_EVERY_POINT, sampleRuns } from '../../points.ts';
import { openWorld, rowsOf, somebody } from '../../world.ts';

test('a run that ends at its time is continued by the next one, and every blob is checked', {
  tags: ['slow'],
}, async () => {
  const world = await openWorld(import.meta.url);
  const one = somebody({ department: 'Kept' });
  await engineWrite.createEntity(world.engine, employees, one);
  const { department, employeeId } = one;
  await engineWrite.createEntity(world.engine, reviews, {
    department,
    employeeId,
    year: 2025,
    rating: 3,
    comments: 'x'.repeat(400_000),
  });
  const kept = await Array.fromAsync(storageBlobs.listContainer(world.storage, 'large'), ({ name }) => name);
  expect(kept).toHaveLength(1);
  // Each is in another partition, and so in another slot, and some are of an earlier release.
  const names = Array.from({ length: 40 }, (_, index) => {
    const address = { table: 'employees', partition: `gone${index}`, row: 'empid_1' };
    const prefix =
      index % 4 === 0 ? engineRead.formerBlobPrefix(address, 'comments') : engineRead.blobPrefix(address, 'comments');
    return { name: prefix + randomUUID(), metadata: engineRead.toReferrer(address) };
  });
  const write = ({ name, metadata }: (typeof names)[number]) =>
    pMap(['large', 'photos'], (container) =>
      storageBlobs.writeBlob(world.storage, { container, name }, Buffer.from('x'), { type: 'text/plain', metadata }),
    );
  await pMap(names, write, { concurrency: 16 });
  let time = Date.now() + 2 * baseValues.DAY_MS;
  const engine = { ...world.engine, now: () => (time += 1) };
  let deleted = 0;
  let runs = 0;
  for (let isComplete = false; !isComplete && runs < 40; runs += 1) {
    const run = await collectOrphans(engine, model.list, { until: time + 20 });
    expect(run.checked).toBeLessThan(20);
    deleted += run.deleted;
    isComplete = run.isComplete;
  }
  expect([deleted, runs > 4]).toEqual([80, true]);
  expect(await Array.fromAsync(storageBlobs.listContainer(world.storage, 'large'), ({ name }) => name)).toEqual(kept);
  // The next run begins with the first blob again, and asks for those that have changed since.
  const address = { table: 'employees', partition: 'gone', row: 'empid_1' };
  await write({ name: engineRead.createBlobName(address, 'comments'), metadata: engineRead.toReferrer(address) });
  time += baseValues.DAY_MS;
  expect(await collectOrphans({ ...engine, now: () => Date.now() + baseValues.DAY_MS }, model.list)).toMatchObject({
    checked: 0,
  });
  expect(await collectAllOrphans(engine, model.list)).toEqual({
    checked: 3,
    deleted: 2,
    kept: 0,
    foreign: 0,
    isComplete: true,
  });
});

/** An account in memory whose clock, and that of the app, a test moves. */
async function openClocked() {
  let shift = 0;
  let crashAt = 0;
  let calls = 0;
  const real = Date.now;
  const now = () => real() + shift;
  vi.spyOn(Date, 'now').mockImplementation(now);
  const memory = createMemoryStorage({ now, account: `clocked${randomUUID().slice(0, 8)}` });
  memory.intercept = async (_request, send) => {
    calls += 1;
    if (crashAt > 0 && calls >= crashAt) throw new Error('This process is dead.');
    return send();
  };
  const storage = storageAccounts.openStorage(memory);
  const engine = engineCore.createEngine(storage, { now });
  await storageTables.provision(storage, operationsModel.resourcesOf(model.list, now()));
  const log = { warn: () => undefined, error: () => undefined };
  const worker = createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' });
  return {
    engine,
    storage,
    /** Runs `work` in a process that dies at a storage call; 0 for never. */
    async dyingAt(call: number, work: () => Promise<unknown>) {
      calls = 0;
      crashAt = call;
      await work().catch(() => undefined);
      crashAt = 0;
    },
    async wait(hours: number) {
      shift += hours * baseValues.HOUR_MS;
      while ((await worker.handleVisible()) > 0) {}
    },
    blobs: async () => (await Promise.all(['large', 'photos'].map((name) => listNames(storage, name)))).flat().sort(),
    /** The blobs that a row names. */
    async named() {
      const tables = await Promise.all(
        ['employees', 'formeremployees', `doorminutes${new Date().toISOString().slice(0, 7).replace('-', '')}`].map(
          (t) => rowsIn(storage, t),
        ),
      );
      return [
        ...new Set(JSON.stringify(tables).match(/[\da-f]{3}\/\w+\/[\w-]{22}\/\w+\/[\w-]+\/[\da-f-]{36}/g)),
      ].sort();
    },
  };
}

const listNames = (storage: Storage, container: string) =>
  Array.fromAsync(storageBlobs.listContainer(storage, container), ({ name }) => name);
const rowsIn = (storage: Storage, table: string) => rowsOf(storage, table).catch(() => []);

test('leaves and counts the blobs of other programs, whatever their metadata say', async () => {
  const { storage, engine } = await openWorld(import.meta.url);
  const address = { table: 'employees', partition: 'gone', row: 'empid_1' };
  const own = engineRead.createBlobName(address, 'photo');
  const foreign = ['07a/report.pdf', `${engineRead.blobPrefix(address, 'photo')}report.pdf`, 'report.pdf'];
  const content = { type: 'text/plain', metadata: engineRead.toReferrer(address) };
  const containers = ['photos', 'uploads'];
  for (const container of containers)
    for (const name of [own, ...foreign])
      await storageBlobs.writeBlob(storage, { container, name }, Buffer.from('x'), content);
  const later = { ...engine, now: () => Date.now() + 2 * baseValues.DAY_MS };
  expect(await collectAllOrphans(later, model.list)).toMatchObject({ deleted: 2, foreign: 6, isComplete: true });
  for (const container of containers) expect(await listNames(storage, container)).toEqual(foreign.toSorted());
});

describe('the daily search', () => {
  afterEach(() => void vi.restoreAllMocks());

  test('keeps an orphan until the backup has copied it, in each period of copies, and asks no storage without a backup', async () => {
    const app = await openClocked();
    const backup = storageAccounts.openStorage(createMemoryStorage({ account: `backup${randomUUID().slice(0, 8)}` }));
    await storageTables.provision(backup, { tables: [], queues: [], containers: ['backup'] });
    const storage = { ...app.storage, backup };
    const engine = { ...app.engine, storage };
    const days = 1;
    const write = async (partition: string) => {
      const address = { table: 'employees', partition, row: 'empid_1' };
      const name = engineRead.createBlobName(address, 'photo');
      const content = { type: 'text/plain', metadata: engineRead.toReferrer(address) };
      await storageBlobs.writeBlob(storage, { container: 'photos', name }, Buffer.from('x'), content);
    };
    const search = () => collectOrphans(engine, model.list, { days });
    await write('first');
    await operationsBackup.copyToBackup(engine, model.list, { days });
    // The next period has begun, and a rule of the account may delete what was copied in this one.
    await app.wait(25);
    await write('second');
    expect(await search()).toMatchObject({ checked: 1, deleted: 0, kept: 1 });
    await app.wait(25);
    expect(await search()).toMatchObject({ checked: 2, deleted: 0, kept: 2 });
    await operationsBackup.copyToBackup(engine, model.list, { days });
    expect(await search()).toMatchObject({ checked: 2, deleted: 2, kept: 0 });
    expect(await app.blobs()).toEqual([]);
    await write('third');
    await app.wait(25);
    // Six of each search, the row, and the delete.
    expect(await costOf(() => collectOrphans(engine, model.list))).toBe(8);
    expect(await app.blobs()).toEqual([]);
  });

  test('asks for each blob once: 1,000 files take 1,180 transactions in 30 days, where full searches take 30,180', async () => {
    const { engine, storage, wait } = await openClocked();
    const address = { table: 'employees', partition: 'Sales', row: 'empid_000001' };
    const files = IS_EVERY_POINT ? 1_000 : 100;
    const names = Array.from({ length: files }, () => engineRead.createBlobName(address, 'photo'));
    const photos = names.map((name) => `"${name}"`).join();
    const properties = Object.fromEntries(
      upTo(11).map((slot) => [`Photos${slot}`, photos.slice(slot * 9_000, (slot + 1) * 9_000 + 100)]),
    );
    await storageRows.submit(storage, { ...address, actions: [{ kind: 'upsert', row: address.row, properties }] });
    const metadata = engineRead.toReferrer(address);
    for (const name of names)
      await storageBlobs.writeBlob(storage, { container: 'photos', name }, Buffer.from('x'), {
        type: 'text/plain',
        metadata,
      });
    let transactions = 0;
    let checked = 0;
    for (let day = 1; day <= 30; day += 1) {
      await wait(24);
      await storageAccounts.measureCost(async (cost) => {
        checked += (await collectOrphans(engine, model.list)).checked;
        transactions += cost.transactions;
      });
    }
    expect([checked, await listNames(storage, 'photos')]).toEqual([files, names.toSorted()]);
    // Each day, three containers are listed, and the position is read and written.
    expect(transactions).toBe(files + 30 * 6);
    await wait(24);
    const full = await costOf(() => collectAllOrphans(engine, model.list));
    expect(full).toBe(files + 7);
  });

  test('deletes the blobs of a table that was dropped, whenever they were asked for', async () => {
    const { engine, storage, wait, blobs } = await openClocked();
    const day = new Date().toISOString().slice(0, 10);
    const counts = new Map(upTo(250).map((slot) => [slot, 1]));
    await featureSeries.setCounts(engine, doorminutes, { department: 'Dropped', day }, counts);
    await wait(25);
    expect(await collectOrphans(engine, model.list)).toMatchObject({ checked: 1, deleted: 0 });
    await wait(24);
    expect(await collectOrphans(engine, model.list)).toMatchObject({ checked: 0 });
    await storageTables.dropTable(storage, `doorminutes${day.slice(0, 7).replace('-', '')}`);
    expect(await collectOrphans(engine, model.list)).toMatchObject({ checked: 1, deleted: 1 });
    expect(await blobs()).toEqual([]);
  });

  test('leaves no orphan, and deletes no blob that a row names, after any writes that die at any call', {
    tags: ['slow'],
  }, async () => {
    const one = { ...somebody({ department: 'Here' }) };
    const key = { department: one.department, employeeId: one.employeeId };
    const day = { department: 'Here', day: new Date().toISOString().slice(0, 10) };
    const text = (length: number) => 'x'.repeat(length);
    const steps = {
      create: (engine: Engine) => engineWrite.createEntity(engine, employees, one),
      photo: (engine: Engine) => featureFiles.putAttachment(engine, { entity: employees, key, field: 'photo' }, png()),
      remove: (engine: Engine) => featureFiles.removeAttachment(engine, { entity: employees, key, field: 'photo' }),
      review: (engine: Engine) =>
        engineWrite.putEntity(
          engine,
          reviews,
          { ...key, year: 2025 },
          { ...key, year: 2025, rating: 3, comments: text(300_000) + randomUUID() },
        ),
      shorten: (engine: Engine) =>
        engineWrite.patchEntity(engine, reviews, { ...key, year: 2025 }, { comments: 'short' }),
      unreview: (engine: Engine) => engineWrite.deleteEntity(engine, reviews, { ...key, year: 2025 }),
      delete: (engine: Engine) => engineWrite.deleteEntity(engine, employees, key),
      away: (engine: Engine) => engineTransfer.requestMove(engine, employees, key, { department: 'There' }),
      back: (engine: Engine) =>
        engineTransfer.requestMove(engine, employees, { ...key, department: 'There' }, { department: 'Here' }),
      archive: (engine: Engine) => engineTransfer.requestArchive(engine, employees, key),
      counts: (engine: Engine) =>
        featureSeries.setCounts(
          engine,
          doorminutes,
          day,
          new Map(upTo(250).map((slot) => [slot, Math.ceil(Math.random() * 9)])),
        ),
      uncount: (engine: Engine) => featureSeries.deleteSeries(engine, doorminutes, day),
      search: (engine: Engine) => collectOrphans(engine, model.list),
    };
    const step = fc.record({
      does: fc.constantFrom(...(Object.keys(steps) as (keyof typeof steps)[])),
      dies: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 14 })),
      hours: fc.constantFrom(0, 1, 13, 25, 60),
    });
    const walk = fc.array(step, { minLength: 4, maxLength: 14 });
    await fc.assert(
      fc.asyncProperty(walk, async (walked) => {
        vi.restoreAllMocks();
        const { engine, dyingAt, wait, blobs, named } = await openClocked();
        await steps.create(engine);
        await steps.photo(engine);
        await steps.review(engine);
        for (const { does, dies, hours } of walked) {
          await dyingAt(dies, () => steps[does](engine));
          await wait(hours);
        }
        for (let days = 0; days < 4; days += 1) {
          await wait(25);
          await collectOrphans(engine, model.list);
        }
        expect(await blobs()).toEqual(await named());
      }),
      sampleRuns(60),
    );
  });
});

const upTo = (last: number) => Array.from({ length: last + 1 }, (_, index) => index);

const png = () => Buffer.concat([PNG, randomBytes(100)]);
