import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  type IndexEntity,
  type InterPartitionIndex,
  type IntraPartitionIndex,
  intraPartitionIndex,
} from '../../lib/index.ts';
import { costOf } from '../cost-of.ts';
import { deploy } from '../fixtures/deploy.ts';
import { employees as entity } from '../fixtures/model.ts';
import { definePlaces } from '../kit/define.ts';
import { engineConsume, engineRead, engineWrite } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { storageRows } from '../kit/storage.ts';
import { log } from '../silent-log.ts';
import { expectIndexesToAgree, laterBy, openWorld, somebody } from '../world.ts';

const byEmail = entity.indexes.email as IntraPartitionIndex;
const byEmailCompanyWide = entity.indexes.emailCompanyWide as InterPartitionIndex;
const byLastNameCompanyWide = entity.indexes.lastNameCompanyWide as IndexEntity;

const { parts } = deploy(
  defineEntity('parts', {
    schema: z.object({ shop: z.string(), partId: z.string(), name: z.string(), shelf: z.string(), maker: z.string() }),
    table: 'parts',
    key: { partition: '{shop}', row: 'part_{partId}' },
    indexes: {
      name: intraPartitionIndex({ row: 'name_{name}' }),
      shelf: intraPartitionIndex({ row: 'shelf_{shelf}' }),
      maker: intraPartitionIndex({ row: 'maker_{maker}' }),
    },
    access: { read: ['hr'], write: ['hr'] },
  }),
);

const world = await openWorld(import.meta.url, [parts]);

describe('an employee', () => {
  test('is in every index after a create of ten transactions, and read with one', async () => {
    const ann = somebody();
    // Intent, claims, transaction; list (read, write), unique rows, entity, intent.
    expect(await costOf(() => engineWrite.createEntity(world.engine, entity, ann))).toBe(10);
    expect(await costOf(() => engineRead.readEntity(world.engine, entity, ann))).toBe(1);
    expect(await costOf(() => engineRead.readByCopy(world.engine, entity, byEmail, ann))).toBe(1);
    expect(await costOf(() => engineRead.readByCopy(world.engine, entity, byEmailCompanyWide, ann))).toBe(1);
    expect(await engineRead.readByCopy(world.engine, entity, byEmailCompanyWide, ann)).toEqual(ann);
    const { items } = await engineRead.readByList(
      world.engine,
      entity,
      byLastNameCompanyWide,
      { lastName: ann.lastName },
      { top: 10 },
    );
    expect(items).toEqual([ann]);
    await expectIndexesToAgree(world.storage, entity);
  });

  test('costs each of many concurrent writers no more than a single one', async () => {
    const ann = somebody();
    await engineWrite.createEntity(world.engine, entity, ann);
    const ages = Array.from({ length: 10 }, (_, age) => age);
    const change = (age: number) => engineWrite.patchEntity(world.engine, entity, ann, { age });
    expect(await costOf(() => Promise.all(ages.map(change)))).toBe(70);
  });

  test.each(['\ufffe', '\uffff', '\u0001\u001f\u007f', '\\"%2!<&>\u2028', '😀'])(
    'is in every index where a name is %j, which not everything can write',
    async (name) => {
      const one = somebody({ department: `At ${name}`, lastName: `Of ${name}` });
      await engineWrite.createEntity(world.engine, entity, one);
      await world.settle();
      expect(await expectIndexesToAgree(world.storage, entity)).toContainEqual(one);
    },
  );

  test('updates its index entries when it changes, and removes them when it is deleted', async () => {
    const ann = somebody();
    const { etag } = await engineWrite.createEntity(world.engine, entity, ann);
    const renamed = { ...ann, lastName: 'Renamed', email: `renamed-${ann.email}` };
    const replaced = await engineWrite.replaceEntity(world.engine, entity, ann, renamed, { ifMatch: etag });
    await world.settle();
    await expectIndexesToAgree(world.storage, entity);
    await expect(engineRead.readByCopy(world.engine, entity, byEmailCompanyWide, ann)).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(
      engineWrite.patchEntity(world.engine, entity, ann, { lastName: 'X' }, { ifMatch: etag }),
    ).rejects.toMatchObject({
      code: 'etag-mismatch',
      etag: replaced.etag,
    });
    expect(await engineRead.readEntity(world.engine, entity, ann)).toMatchObject({
      values: renamed,
      etag: replaced.etag,
    });
    await engineWrite.deleteEntity(world.engine, entity, ann, { ifMatch: replaced.etag });
    await expect(engineRead.readEntity(world.engine, entity, ann)).rejects.toMatchObject({ code: 'not-found' });
    await world.settle();
    await expectIndexesToAgree(world.storage, entity);
  });
});

test('an entity with several lost copies can be changed and deleted', async () => {
  const [name, shelf, maker] = ['Nut', 'A1', 'Acme'];
  const [nut, bolt] = [
    { shop: 'North', partId: '1', name, shelf, maker },
    { shop: 'South', partId: '2', name, shelf, maker },
  ];
  const lose = async (shop: string) => {
    for (const row of ['name_Nut', 'shelf_A1', 'maker_Acme'])
      await world.storage.table('parts').deleteEntity(shop, row);
  };
  for (const part of [nut, bolt]) await engineWrite.createEntity(world.engine, parts, part);
  await lose('North');
  await engineWrite.deleteEntity(world.engine, parts, nut);
  await lose('South');
  await engineWrite.replaceEntity(world.engine, parts, bolt, { ...bolt, name: 'Bolt', shelf: 'B2', maker: 'Best' });
  await world.settle();
  expect(await expectIndexesToAgree(world.storage, parts)).toMatchObject([{ partId: '2', name: 'Bolt' }]);
});

test('a row of an index that an older release does not know is kept until the index is built', async () => {
  const one = somebody();
  await engineWrite.createEntity(world.queued, entity, one);
  const message = await world.take('index-changes', one.employeeId);
  const { emailCompanyWide: _, ...indexes } = entity.indexes;
  await engineConsume.consumeIntent({ engine: world.engine, entities: [{ ...entity, indexes }], log }, message);
  const indexEntry = definePlaces.indexEntriesOf(entity, one).find(({ index }) => index === 'emailCompanyWide');
  expect(indexEntry && (await storageRows.readRow(world.storage, indexEntry))).toMatchObject({
    properties: { SourceRow: `empid_${one.employeeId}` },
  });
  // The writer of this claim was active a moment ago.
  const later = laterBy(world.engine, () => 2 * world.engine.timing.claimForMs);
  const built = await operationsCheck.verifyPage(later, entity, {
    top: 1_000,
    repair: true,
    only: 'emailCompanyWide',
    patience: 10,
  });
  expect(built.left).toBe(0);
  await expectIndexesToAgree(world.storage, entity);
});

describe('concurrent writers', () => {
  test('of one email: exactly one succeeds', async () => {
    const one = somebody();
    const others = Array.from({ length: 7 }, () => somebody({ email: one.email, department: 'Marketing' }));
    const outcomes = await Promise.allSettled(
      [one, ...others].map((values) => engineWrite.createEntity(world.engine, entity, values)),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'duplicate-value', field: 'email' });
    await world.settle();
    await expectIndexesToAgree(world.storage, entity);
  });

  test('of one last name are all in its lists', async () => {
    const joneses = Array.from({ length: 12 }, () => somebody({ lastName: 'Jones', department: 'Lists' }));
    await Promise.all(joneses.map((values) => engineWrite.createEntity(world.engine, entity, values)));
    await world.settle();
    const { items } = await engineRead.readByList(
      world.engine,
      entity,
      byLastNameCompanyWide,
      { lastName: 'Jones' },
      { top: 50 },
    );
    expect(items).toHaveLength(12);
    await expectIndexesToAgree(world.storage, entity);
  });

  test('of one employee lose no change to different fields', async () => {
    const ann = somebody();
    await engineWrite.createEntity(world.engine, entity, ann);
    // The constant clock keeps callers from timing out on a slow machine.
    const now = Date.now();
    const patient = { ...world.engine, now: () => now };
    await Promise.all([
      engineWrite.patchEntity(patient, entity, ann, { phone: '1' }),
      engineWrite.patchEntity(patient, entity, ann, { jobTitle: 'Clerk' }),
      engineWrite.patchEntity(patient, entity, ann, { email: `x-${ann.email}` }),
      engineWrite.patchEntity(patient, entity, ann, { lastName: 'Patched' }),
    ]);
    const { values } = await engineRead.readEntity(world.engine, entity, ann);
    expect(values).toEqual({ ...ann, phone: '1', jobTitle: 'Clerk', email: `x-${ann.email}`, lastName: 'Patched' });
    await world.settle();
    await expectIndexesToAgree(world.storage, entity);
  });
});
