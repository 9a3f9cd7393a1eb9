import { describe, expect, test } from 'vitest';
import { PNG } from '../../../../local/walk/png.ts';
import { type BackedUp, dump, openBackedUp, type TargetOptions } from '../../../backed-up.ts';
import {
  categories,
  customers,
  departments,
  doorminutes,
  employees,
  expenses,
  logins,
  messagehours,
  model,
  orders,
  people,
  products,
  reservations,
  reviews,
  sales,
} from '../../../fixtures/model.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { featureFiles, featureSeries } from '../../../kit/features.ts';
import { storageRows, storageTables } from '../../../kit/storage.ts';
import { somebody } from '../../../world.ts';

const LONG = 'x'.repeat(400_000);

/** Writes rows of every pattern. */
async function fill({ engine, storage, settle }: BackedUp) {
  const create = engineWrite.createEntity;
  await create(engine, departments, { department: 'Ops', description: 'before' });
  const staff = ['Anna', 'Ben', 'Cleo', 'Dora'].map((firstName) =>
    somebody({ department: 'Ops', firstName, nationalId: `secret of ${firstName}`, jobTitle: 'Manager', age: 40 }),
  );
  for (const one of staff) await create(engine, employees, one);
  const [anna, ben, cleo, dora] = staff as [Key, Key, Key, Key];
  const { employeeId } = anna;
  await create(engine, reviews, { department: 'Ops', employeeId, year: 2026, rating: 5, comments: LONG });
  await featureFiles.putAttachment(engine, { entity: employees, key: anna, field: 'photo' }, PNG);
  await create(engine, logins, { employeeId, succeeded: true });
  await create(engine, expenses, { employeeId, amount: 12, category: 'train' });
  await create(engine, people, {
    country: 'PT',
    personId: 'p1',
    firstName: 'Rita',
    kind: 'customer',
    companyName: 'R',
    discount: 1,
  });
  await create(engine, reservations, { office: 'Porto', reservationId: 'R1', kind: 'desk', storey: 2 });
  await create(engine, customers, { city: 'Porto', customerId: 'RITA', companyName: 'R', contactName: 'Rita Lobo' });
  await create(engine, orders, { customerId: 'RITA', orderId: 1, orderDate: '2026-11-01', freight: 5 });
  for (const saleId of ['S000001', 'S000002'])
    await create(engine, sales, {
      branch: 'Porto',
      saleId,
      soldOn: '2026-11-01',
      amount: 7.25,
      clerk: 'ann',
      profit: 3,
    });
  await create(engine, categories, { categoryId: 1, buyer: 'Bo', taxRate: 0.2 });
  await create(engine, products, { categoryId: 1, productId: 2, productName: 'Tea' });
  const day = new Date().toISOString().slice(0, 10);
  await featureSeries.increment(engine, doorminutes, { department: 'Ops', day }, { slot: 3, by: 2 });
  await featureSeries.increment(engine, messagehours, { employeeId, day }, { slot: 3, by: 2 });
  // A row of version 1, and values of types that no field has.
  const properties = {
    EntityType: 'people',
    EntityVersion: 1,
    WriteId: 'w',
    Incarnation: 'i',
    name: 'Old Name',
    kind: 'customer',
    companyName: 'O',
    Whole: { type: 'Double', value: '5.0' },
    Big: { type: 'Int64', value: '9007199254740993' },
    Id: { type: 'Guid', value: '01234567-89ab-cdef-0123-456789abcdef' },
    At: { type: 'DateTime', value: '2026-11-29T12:51:09.1234567Z' },
  };
  await storageRows.submit(storage, {
    table: 'people',
    partition: 'PT',
    actions: [{ kind: 'insert', row: 'p0', properties }],
  });
  await engineTransfer.requestArchive(engine, employees, dora);
  await settle();
  return { anna, ben, cleo };
}
type Key = ReturnType<typeof somebody>;

/** What happens after the cut. */
async function goOn({ engine, settle }: BackedUp, { anna, ben, cleo }: Awaited<ReturnType<typeof fill>>) {
  await engineWrite.deleteEntity(engine, employees, anna);
  await engineWrite.patchEntity(engine, employees, ben, { lastName: 'Later' });
  await engineTransfer.requestMove(engine, employees, cleo, { department: 'Sales' });
  await engineWrite.deleteEntity(engine, sales, { branch: 'Porto', saleId: 'S000001' });
  await engineWrite.createEntity(engine, employees, somebody({ department: 'Ops' }));
  await settle();
}

const PLACES: Record<string, TargetOptions> = {
  'another prefix': {},
  'another account': { accounts: 1, prefix: '' },
  'three accounts': { accounts: 3, prefix: '' },
};

describe('a whole restore', { tags: ['slow'] }, () => {
  test.each(Object.entries(PLACES))(
    'to %s has each row as it was, and all that follows from them',
    async (_, place) => {
      const app = await openBackedUp(model);
      const filled = await fill(app);
      await app.snapshot();
      await app.copyBlobs();
      await engineWrite.patchEntity(app.engine, employees, filled.ben, { lastName: 'Between' });
      await app.settle();
      const at = app.cut();
      const before = await dump(app.storage);
      await goOn(app, filled);
      const target = await app.openTarget(place);
      const report = await app.restore(target, at);
      expect(report.findings).toEqual([]);
      expect(report.tables?.filter(({ isEqual }) => !isEqual)).toEqual([]);
      expect(report.blobs?.missing).toEqual([]);
      expect(await dump(target.storage)).toEqual(before);
      const { engine } = target;
      const anna = await engineRead.readEntity(engine, employees, filled.anna);
      expect(await engineWrite.toPlain(engine, employees, anna.values)).toMatchObject({ nationalId: 'secret of Anna' });
      const review = await engineRead.readEntity(engine, reviews, { ...filled.anna, year: 2026 });
      expect((await engineWrite.toPlain(engine, reviews, review.values)).comments).toBe(LONG);
      const photo = { entity: employees, key: filled.anna, field: 'photo' };
      const found = await featureFiles.describeAttachment(engine, photo);
      expect(await featureFiles.readAttachment(engine, photo, found)).toEqual(PNG);
    },
  );
});

/** True for a request that changes rows or a blob. */
const isWrite = ({ method, url }: { readonly method: string; readonly url: string }) =>
  method !== 'GET' && method !== 'HEAD' && !/\/Tables|restype=container|:2\//.test(url);

test('a restore that was stopped goes on where it was, and one that is done changes nothing', {
  tags: ['slow'],
}, async () => {
  const app = await openBackedUp(model);
  const filled = await fill(app);
  await app.snapshot();
  await app.copyBlobs();
  const at = app.cut();
  const before = await dump(app.storage);
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  const [memory] = target.memories;
  for (let stops = 0; ; stops += 1) {
    const stop = new AbortController();
    let left = 3 + 5 * stops;
    if (memory)
      memory.intercept = (request, send) => {
        if (isWrite(request)) left -= 1;
        if (left <= 0) stop.abort();
        return send();
      };
    const restored = await app.restore(target, at, { signal: stop.signal }).catch((error: Error) => {
      expect(error.name).toBe('AbortError');
    });
    if (!restored && stops < 200) continue;
    expect(stops).toBeGreaterThan(3);
    expect(restored?.findings).toEqual([]);
    break;
  }
  expect(await dump(target.storage)).toEqual(before);
  await engineWrite.patchEntity(target.engine, employees, filled.ben, { lastName: 'At the target' });
  let writes = 0;
  if (memory)
    memory.intercept = (request, send) => {
      if (isWrite(request)) writes += 1;
      return send();
    };
  const again = await app.restore(target, at);
  expect([again.wasDone, again.findings, writes]).toEqual([true, [], 0]);
  const { values } = await engineRead.readEntity(target.engine, employees, filled.ben);
  expect(values.lastName).toBe('At the target');
});

test('a restore goes on that was stopped before each account had the table of a period', async () => {
  const app = await openBackedUp(model);
  const at = new Date(Date.now() - 10 * baseValues.DAY_MS).toISOString();
  for (let nth = 0; nth < 8; nth += 1)
    await engineWrite.createEntity(app.engine, logins, { employeeId: somebody().employeeId, at, succeeded: true });
  await app.snapshot();
  const cut = app.cut();
  const target = await app.openTarget({ accounts: 2, prefix: '' });
  const [, second] = target.memories;
  const day = at.slice(0, 10).replaceAll('-', '');
  if (second)
    second.intercept = (request, send) => {
      const isCreate = request.method === 'POST' && /\/Tables(\?|$)/.test(request.url);
      if (isCreate && String(request.body).includes(day)) throw new Error('The process stops here.');
      return send();
    };
  await expect(app.restore(target, cut)).rejects.toThrow();
  if (second) second.intercept = undefined;
  const { tables, findings } = await app.restore(target, cut);
  expect([tables?.every(({ isEqual }) => isEqual), findings]).toEqual([true, []]);
  expect(await dump(target.storage)).toEqual(await dump(app.storage));
});

test('a repeated copy writes nothing, and corrects a row that differs', async () => {
  const app = await openBackedUp(model);
  const { engine, storage } = app;
  for (const office of ['Porto', 'Faro'])
    await engineWrite.createEntity(engine, reservations, { office, reservationId: 'R1', kind: 'desk', storey: 2 });
  await app.snapshot();
  const at = app.cut();
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  let copied = 0;
  const stop = new AbortController();
  const onProgress = ({ doing }: { doing: string }) => doing === 'settling' && stop.abort();
  await expect(app.restore(target, at, { signal: stop.signal, onProgress })).rejects.toThrow('abort');
  const mark = { table: 'system', partition: 'restore', row: 'restore' };
  const found = await storageRows.readRow(target.storage, mark);
  expect(found?.properties.Phase).toBe('copied');
  const setPhase = (Phase: string) =>
    storageRows.submit(target.storage, {
      ...mark,
      actions: [{ kind: 'merge', row: mark.row, properties: { Phase }, etag: '*' }],
    });
  await setPhase('copying');
  const again = await app.restore(target, at);
  copied = again.tables?.reduce((sum, { changed }) => sum + changed, 0) ?? -1;
  expect([copied, again.tables?.map(({ rows }) => rows)]).toEqual([0, [2]]);
  await storageRows.submit(target.storage, {
    table: 'reservations',
    partition: 'Porto',
    actions: [
      { kind: 'merge', row: 'R1', properties: { storey: { type: 'Double', value: '2.0' } }, etag: '*' },
      { kind: 'insert', row: 'R2', properties: { EntityType: 'reservations', WriteId: 'w' } },
    ],
  });
  await setPhase('copying');
  const third = await app.restore(target, at);
  expect(third.tables?.map(({ changed, isEqual }) => [changed, isEqual])).toEqual([[2, true]]);
  expect(await dump(target.storage)).toEqual(await dump(storage));
});

test('refuses a place where the app has rows, or the rows of another restore', async () => {
  const app = await openBackedUp(model);
  await engineWrite.createEntity(app.engine, customers, { city: 'Porto', customerId: 'RITA', companyName: 'R' });
  await app.snapshot();
  const [at, later] = [app.cut(), app.cut()];
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  await app.restore(target, at);
  await expect(app.restore(target, later)).rejects.toThrow(`They are of the restore to ${at}.`);
  await expect(app.restore(app, at)).rejects.toThrow('The table customers has rows of the app.');
  const used = await app.openTarget({ accounts: 1, prefix: '' });
  await app.restore(used, at, { entity: 'orders' });
  await engineWrite.createEntity(used.engine, reservations, {
    office: 'P',
    reservationId: 'R1',
    kind: 'desk',
    storey: 1,
  });
  await expect(app.restore(used, at)).rejects.toThrow('The table reservations has rows of the app.');
  await expect(app.restore(await app.openTarget(), '2020-01-01T00:00:00.0000000Z')).rejects.toThrow('begins at');
});

test('restores one entity with its archive and its indexes, or one partition, or one row with its children', {
  tags: ['slow'],
}, async () => {
  const app = await openBackedUp(model);
  const { anna } = await fill(app);
  await app.snapshot();
  await app.copyBlobs();
  const at = app.cut();
  const all = Object.entries(await dump(app.storage));
  const of = (...tables: string[]) =>
    Object.fromEntries(all.filter(([key]) => tables.includes(key.split(' ')[0] ?? '')));
  const one = await app.openTarget();
  const report = await app.restore(one, at, { entity: 'sales' });
  expect(report.findings).toEqual([]);
  expect(await dump(one.storage)).toEqual(of('sales', 'formersales', 'salesbymonth', 'salesbyday', 'salesbyclerk'));
  const other = await app.openTarget();
  await app.restore(other, at, { entity: 'employees', partition: 'Ops' });
  const restored = await dump(other.storage);
  expect(Object.keys(of('employees')).filter((key) => !(key in restored))).toEqual([]);
  expect(Object.keys(restored).filter((key) => key.startsWith('employeesbyemail'))).toHaveLength(3);
  const single = await app.openTarget();
  const row = `empid_${anna.employeeId}`;
  await app.restore(single, at, { entity: 'employees', partition: 'Ops', row });
  const rows = Object.keys(await dump(single.storage)).filter((key) => /^employees \S+ empid_/.test(key));
  expect(rows).toEqual([`employees Ops ${row}`, `employees Ops ${row}_2026`]);
  await expect(app.restore(await app.openTarget(), at, { entity: 'employees', row })).rejects.toMatchObject({
    field: 'row',
  });
  await expect(app.restore(await app.openTarget(), at, { entity: 'nothing' })).rejects.toThrow('"nothing" not found');
});

test('builds the indexes of many entities with a few requests for each', async () => {
  const app = await openBackedUp(model);
  const ids = Array.from({ length: 60 }, (_, index) => `C${String(index).padStart(3, '0')}`);
  const all = ids.map((customerId) => ({
    city: 'Porto',
    customerId,
    companyName: customerId,
    contactName: 'Rita Lobo',
  }));
  await engineWrite.writeBatch(
    app.engine,
    customers,
    all.map((create) => ({ create })),
  );
  await app.settle();
  await app.snapshot();
  const before = await dump(app.storage);
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  const [memory] = target.memories;
  let phase = 'copying';
  const counts: Record<string, number> = {};
  if (memory)
    memory.intercept = (request, send) => {
      if (isWrite(request)) counts[phase] = (counts[phase] ?? 0) + 1;
      return send();
    };
  const report = await app.restore(target, app.cut(), {
    onProgress: ({ doing }) => {
      phase = doing;
    },
  });
  expect(report.findings).toEqual([]);
  expect(await dump(target.storage)).toEqual(before);
  // Of one index, each is alone in its partition; those of the others are together in one, and in four.
  expect(counts.settling).toBeLessThan(60 + 1 + 4 + model.list.length + 10);
  expect(counts.checking).toBe(1);
});

test('replaces no row of another program at the key of an index row', async () => {
  const app = await openBackedUp(model);
  for (const [customerId, contactName] of [
    ['RITA', 'Rita Lobo'],
    ['EVA', 'Eva Neves'],
  ])
    await engineWrite.createEntity(app.engine, customers, { city: 'Porto', customerId, companyName: 'C', contactName });
  await app.settle();
  await app.snapshot();
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  await storageTables.provision(target.storage, { tables: ['customersbylastname'], queues: [], containers: [] });
  const [table, partition, row] = ['customersbylastname', 'Porto', 'Lobo_RITA'];
  const other = { kind: 'insert', row, properties: { Name: 'of another program' } } as const;
  await storageRows.submit(target.storage, { table, partition, actions: [other] });
  const { findings } = await app.restore(target, app.cut());
  expect(findings.map((found) => [found.kind, found.table, found.row])).toEqual([['conflict', table, row]]);
  const found = await storageRows.readRow(target.storage, { table, partition, row });
  expect(found?.properties).toEqual({ Name: 'of another program' });
  const eva = await storageRows.readRow(target.storage, { table, partition, row: 'Neves_EVA' });
  expect(eva?.properties.customerId).toBe('EVA');
});
