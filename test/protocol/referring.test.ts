import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type DeclaredEntity,
  defineEntity,
  interPartitionIndex,
  intraPartitionIndex,
  RowkeyError,
  type Values,
} from '../../lib/index.ts';
import { costOf } from '../cost-of.ts';
import { interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import * as directory from '../fixtures/directory.ts';
import * as shop from '../fixtures/shop-and-films.ts';
import type { Entity } from '../kit/define.ts';
import { engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { httpDoor } from '../kit/http.ts';
import { operationsCheck } from '../kit/operations.ts';
import { samplePoints } from '../points.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody, type World } from '../world.ts';

const access = { read: ['hr'], write: ['hr'] };
const schemaOfSites = z.object({ city: z.string(), siteId: z.string(), code: z.string(), name: z.string().optional() });

const sitesDeclared = defineEntity('sites', {
  schema: schemaOfSites,
  table: 'sites',
  key: { partition: '{city}', row: 'site_{siteId}' },
  indexes: {
    code: interPartitionIndex({ table: 'sitesbycode', partition: '{code#}', row: '{code}', unique: true }),
  },
  movable: ['city'],
  archive: { table: 'formersites' },
  access,
});

/** In the partition of its site, to which it refers by key. */
const gatesDeclared = defineEntity('gates', {
  schema: z.object({
    city: z.string(),
    gateId: z.string(),
    siteId: z.string().optional(),
    note: z.string().optional(),
  }),
  table: 'sites',
  key: { partition: '{city}', row: 'gate_{gateId}' },
  indexes: { site: intraPartitionIndex({ row: 'ofsite_{siteId}_{gateId}', copies: 'keys' }) },
  references: { siteId: { to: sitesDeclared, onDelete: 'refuse' } },
  access,
});

/** In another table, found through an index. */
const visitsDeclared = defineEntity('visits', {
  schema: z.object({ visitId: z.string(), siteCode: z.string().optional(), note: z.string().optional() }),
  table: 'visits',
  key: { partition: '{visitId#}', row: '{visitId}' },
  indexes: {
    site: interPartitionIndex({ table: 'visitsbysite', partition: '{siteCode}', row: '{visitId}', copies: 'keys' }),
  },
  references: { siteCode: { to: sitesDeclared, by: 'code', onDelete: 'refuse' } },
  access,
});

const invoicesDeclared = defineEntity('invoices', {
  schema: z.object({
    customerId: z.string(),
    invoiceId: z.int32().min(0),
    amount: z.number(),
    responsibleId: z.string().optional(),
  }),
  table: 'invoices',
  key: { partition: '{customerId}', row: '{invoiceId:8}' },
  references: {
    customerId: { to: shop.customers, onDelete: 'refuse' },
    responsibleId: { to: directory.employees, by: 'employeeId', onDelete: 'report' },
  },
  access,
});

/** Refers to itself: a person and the one who leads them. */
const leadersDeclared: DeclaredEntity = defineEntity('leaders', {
  schema: z.object({ city: z.string(), leaderId: z.string(), ledBy: z.string().optional() }),
  table: 'leaders',
  key: { partition: '{city}', row: '{leaderId}' },
  indexes: { ledBy: intraPartitionIndex({ row: 'by_{ledBy}_{leaderId}', copies: 'keys' }) },
  references: { ledBy: { to: (): DeclaredEntity => leadersDeclared, by: 'leaderId', onDelete: 'refuse' } },
  movable: ['city'],
  access,
}) as unknown as DeclaredEntity;

/** Moves between sites, to which it refers by the field that a move changes. */
const parcelsDeclared = defineEntity('parcels', {
  schema: z.object({ siteCode: z.string(), parcelId: z.string(), firstCode: z.string() }),
  table: 'parcels',
  key: { partition: '{siteCode}', row: '{parcelId}' },
  references: {
    siteCode: { to: sitesDeclared, by: 'code', onDelete: 'report' },
    firstCode: { to: sitesDeclared, by: 'code', onDelete: 'report' },
  },
  movable: ['siteCode'],
  access,
});

const { sites, gates, visits, parcels } = deploy(sitesDeclared, gatesDeclared, visitsDeclared, parcelsDeclared);
const leaders = deploy(leadersDeclared).leaders as Entity;
const { customers, employees, invoices } = deploy(shop.customers, directory.employees, invoicesDeclared);

const world = await openWorld(import.meta.url, [sites, gates, visits, parcels, invoices, leaders]);

let counter = 0;
const create = (entity: Entity, values: Values) => engineWrite.createEntity(world.engine, entity, values);

async function meet() {
  counter += 1;
  const customerId = `C${counter}`;
  const customer = { city: 'London', customerId, companyName: 'A' };
  await create(customers, customer);
  return {
    ...customer,
    invoice: (invoiceId = 1, more: Values = {}) => ({ customerId, invoiceId, amount: 1, ...more }),
  };
}

async function build() {
  const id = randomUUID();
  const site = { city: `City${id}`, siteId: 'A', code: id };
  await create(sites, site);
  const gate = { city: site.city, gateId: '1', siteId: site.siteId };
  return { site, gate, visit: { visitId: id, siteCode: site.code } };
}

async function errorOf(write: Promise<unknown>): Promise<RowkeyError> {
  const error = await write.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof RowkeyError) return error;
  throw new Error(`No error of the engine: ${error}`);
}

const findings = async (entity: Entity, partition: string) => {
  const position = { table: 0, after: { partition, row: '' }, left: 0 };
  const page = await operationsCheck.verifyPage(world.engine, entity, { position, top: 3, repair: true, patience: 10 });
  return page.findings.filter((finding) => finding.partition === partition);
};

describe('a field that refers to an entity of another partition', () => {
  test('must name an existing entity, and a rejected write changes nothing', async () => {
    const { invoice } = await meet();
    const before = await rowsOf(world.storage, 'invoices');
    const error = await errorOf(create(invoices, invoice(1, { customerId: 'NOBODY' })));
    expect(httpDoor.toProblem(error)).toMatchObject({ status: 400, code: 'invalid-input', field: 'customerId' });
    expect(error.message).toBe('"customerId" refers to no entity of customers.');
    expect(await rowsOf(world.storage, 'invoices')).toEqual(before);
    expect(await world.handleVisible()).toBe(0);
  });

  test('costs one read when it is written, and none when another field changes', async () => {
    const { invoice } = await meet();
    const one = somebody();
    await create(employees, one);
    const costs = {
      create: await costOf(() => create(invoices, invoice())),
      'another field': await costOf(() => engineWrite.patchEntity(world.engine, invoices, invoice(), { amount: 2 })),
      'the reference': await costOf(() =>
        engineWrite.patchEntity(world.engine, invoices, invoice(), { responsibleId: one.employeeId }),
      ),
      'no reference any more': await costOf(() =>
        engineWrite.patchEntity(world.engine, invoices, invoice(), { responsibleId: null }),
      ),
    };
    // The read of an entity before a change, and the write.
    expect(costs).toEqual({ create: 2, 'another field': 2, 'the reference': 3, 'no reference any more': 2 });
  });

  test('costs one read for all entities of a batch that refer to the same one', async () => {
    const { invoice } = await meet();
    const batch = Array.from({ length: 20 }, (_, index) => invoice(index));
    const alone = batch.map((one) => ({ ...one, responsibleId: undefined }));
    expect(await costOf(() => putAll(world.engine, invoices, alone))).toBe(20 + 1 + 1);
  });

  test('rejects only the entities of a batch that refer to none', async () => {
    const { invoice } = await meet();
    const outcomes = await putAll(world.engine, invoices, [
      invoice(1),
      invoice(2, { responsibleId: 'nobody' }),
      invoice(3),
    ]);
    expect(outcomes).toMatchObject(['created', { code: 'invalid-input', field: 'responsibleId' }, 'created']);
  });

  test('may refer to an entity whose unique value is not confirmed yet', async () => {
    const { city, customerId, invoice } = await meet();
    const [entry] = (await rowsOf(world.storage, 'customersbyid')).filter(({ rowKey }) => rowKey === customerId);
    const keys = { partitionKey: String(entry?.partitionKey), rowKey: customerId };
    await world.storage.table('customersbyid').updateEntity({ ...keys, Confirmed: false }, 'Merge');
    expect(await costOf(() => create(invoices, invoice()))).toBe(3);
    await world.storage.table('customers').deleteEntity(city, customerId);
    expect(await errorOf(create(invoices, invoice(2)))).toMatchObject({ code: 'invalid-input' });
    await world.storage.table('customersbyid').deleteEntity(keys.partitionKey, keys.rowKey);
  });
});

describe('a field that refers to an entity of the same partition', () => {
  test('is checked by the transaction, which writes the row of the other entity once', async () => {
    const { site, gate } = await build();
    const siteRow = async () =>
      (await rowsOf(world.storage, 'sites')).find(
        ({ partitionKey, rowKey }) => partitionKey === site.city && rowKey === 'site_A',
      );
    const before = await siteRow();
    const two = [gate, { ...gate, gateId: '2' }].map((create) => ({ create }));
    expect(await engineWrite.writeAtomically(world.engine, gates, two)).toMatchObject([
      { outcome: 'created' },
      { outcome: 'created' },
    ]);
    const after = await siteRow();
    expect(after?.etag).not.toBe(before?.etag);
    const { TouchedBy: touched, etag: _, timestamp: __, ...values } = after ?? {};
    const { TouchedBy: former, etag: ___, timestamp: ____, ...others } = before ?? {};
    expect(touched).toEqual(expect.any(String));
    expect([former === touched, values]).toEqual([false, others]);
    const together = [
      { entity: sites, action: { patch: { city: site.city, siteId: 'A', name: 'Depot' } } },
      { entity: gates, action: { create: { ...gate, gateId: '3' } } },
    ] as const;
    expect(await engineWrite.transact(world.engine, together)).toHaveLength(2);
    const gone = { ...gate, gateId: '4', siteId: 'B' };
    expect(await errorOf(create(gates, gone))).toMatchObject({ code: 'invalid-input', field: 'siteId' });
    await expectIndexesToAgree(world.storage, gates);
  });
});

describe('an entity that others refer to', () => {
  test('cannot be deleted with onDelete "refuse", and then can', async () => {
    const { city, customerId, invoice } = await meet();
    await create(invoices, invoice());
    const before = await rowsOf(world.storage, 'customers');
    const error = await errorOf(engineWrite.deleteEntity(world.engine, customers, { city, customerId }));
    expect(httpDoor.toProblem(error)).toMatchObject({
      status: 409,
      code: 'referenced',
      detail: `customers "London/${customerId}" cannot be deleted: invoices refer to it in "customerId".`,
    });
    expect(await rowsOf(world.storage, 'customers')).toEqual(before);
    await engineWrite.deleteEntity(world.engine, invoices, invoice());
    await engineWrite.deleteEntity(world.engine, customers, { city, customerId });
    await expectIndexesToAgree(world.storage, customers);
  });

  test('costs one query more to delete', async () => {
    const { city, customerId } = await meet();
    const other = await meet();
    const cost = await costOf(() => engineWrite.deleteEntity(world.engine, customers, { city, customerId }));
    const { customers: alone } = deploy(shop.customers);
    const without = () => engineWrite.deleteEntity(world.engine, alone, other);
    expect(cost - (await costOf(without))).toBe(1);
  });

  test('can be deleted with onDelete "report", and the check finds who refers to it', async () => {
    const { customerId, invoice } = await meet();
    const one = somebody();
    await create(employees, one);
    await create(invoices, invoice(7, { responsibleId: one.employeeId }));
    expect(await findings(invoices, customerId)).toEqual([]);
    await engineWrite.deleteEntity(world.engine, employees, one);
    const expected = { kind: 'dangling', of: 'responsibleId', table: 'invoices', row: '00000007', repaired: false };
    expect(await findings(invoices, customerId)).toEqual([expect.objectContaining(expected)]);
    // A change of another field is not rejected.
    await engineWrite.patchEntity(world.engine, invoices, invoice(7), { amount: 3 });
  });

  test('is found through an index, but not by a stale entry of it', async () => {
    const { site, visit } = await build();
    await create(visits, visit);
    expect(await errorOf(engineWrite.deleteEntity(world.engine, sites, site))).toMatchObject({ code: 'referenced' });
    // The index entry stays until the queue is handled.
    await engineWrite.patchEntity(world.queued, visits, visit, { siteCode: null });
    await engineWrite.deleteEntity(world.engine, sites, site);
    await world.settle();
    await expectIndexesToAgree(world.storage, visits);
  });

  test('must keep the value that others refer to', async () => {
    const { site, visit } = await build();
    await create(visits, visit);
    const error = await errorOf(engineWrite.patchEntity(world.engine, sites, site, { code: `new-${site.code}` }));
    expect(httpDoor.toProblem(error).detail).toMatch(/ must keep its "code": visits refer to it in "siteCode"\.$/);
    await engineWrite.patchEntity(world.engine, sites, site, { name: 'Other' });
  });

  test('cannot be archived, which the request already says', async () => {
    const { site, gate } = await build();
    await create(gates, gate);
    const error = await errorOf(engineTransfer.requestArchive(world.engine, sites, site));
    expect(httpDoor.toProblem(error).detail).toMatch(/ cannot be archived or moved: gates refer to it in "siteId"\.$/);
  });

  test('stays where it is if others refer to it before its archive is done', async () => {
    const { site, gate } = await build();
    const operationId = await engineTransfer.requestArchive(world.engine, sites, site);
    await create(gates, gate);
    await world.settle();
    const status = await engineWrite.readOperation(world.engine, {
      operation: 'archive',
      entity: 'sites',
      operationId,
    });
    expect(status).toMatchObject({ status: 'failed', reason: expect.stringContaining('gates refer to it') });
    expect((await engineRead.readEntity(world.engine, sites, site)).values).toEqual(site);
    expect(await rowsOf(world.storage, 'formersites')).toEqual([]);
    expect(await findings(sites, site.city)).toEqual([]);
  });

  test('must exist before another entity is moved to it, which the request already says', async () => {
    const [{ site: from }, { site: to }] = [await build(), await build()];
    const parcel = { siteCode: from.code, parcelId: '1', firstCode: from.code };
    await create(parcels, parcel);
    const error = await errorOf(engineTransfer.requestMove(world.engine, parcels, parcel, { siteCode: 'nowhere' }));
    expect(httpDoor.toProblem(error)).toMatchObject({ status: 400, code: 'invalid-input', field: 'siteCode' });
    // The entity, the site, the record of the operation, its message and the reminder; not the reference that the move keeps.
    expect(await costOf(() => engineTransfer.requestMove(world.engine, parcels, parcel, { siteCode: to.code }))).toBe(
      5,
    );
    await world.settle();
    const moved = { ...parcel, siteCode: to.code };
    expect((await engineRead.readEntity(world.engine, parcels, moved)).values).toEqual(moved);
  });

  test('is not kept at the destination of a move that is undone, although others refer to it', async () => {
    const { site, gate, visit } = await build();
    await create(visits, visit);
    const to = { city: `New${site.city}` };
    const operationId = await engineTransfer.requestMove(world.engine, sites, site, to);
    await create(gates, gate);
    await world.settle();
    const status = await engineWrite.readOperation(world.engine, { operation: 'move', entity: 'sites', operationId });
    expect(status).toMatchObject({ status: 'failed', reason: expect.stringContaining('gates refer to it') });
    expect((await engineRead.readEntity(world.engine, sites, site)).values).toEqual(site);
    expect(await errorOf(engineRead.readEntity(world.engine, sites, { ...site, ...to }))).toMatchObject({
      code: 'not-found',
    });
    expect(await findings(sites, site.city)).toEqual([]);
  });

  test('can be moved if others refer to it by a unique value, and not if they do so by its key', async () => {
    const { site, gate, visit } = await build();
    await create(visits, visit);
    const to = { city: `New${site.city}` };
    await engineTransfer.requestMove(world.engine, sites, site, to);
    await world.settle();
    expect((await engineRead.readEntity(world.engine, sites, { ...site, ...to })).values).toEqual({ ...site, ...to });
    expect(await errorOf(engineWrite.deleteEntity(world.engine, sites, { ...site, ...to }))).toMatchObject({
      code: 'referenced',
    });
    await create(gates, { ...gate, ...to });
    const move = engineTransfer.requestMove(world.engine, sites, { ...site, ...to }, { city: site.city });
    expect(await errorOf(move)).toMatchObject({ code: 'referenced' });
  });
});

describe('a write that refers to an entity and a delete of it', () => {
  type Scene = {
    write: (engine: World['engine']) => Promise<unknown>;
    remove: (engine: World['engine']) => Promise<unknown>;
  };

  /** Runs one of both right before or after each storage call of the other; returns the outcomes. */
  async function race(set: () => Promise<Scene>): Promise<string[]> {
    const outcomes: string[] = [];
    const codeOf = (work: Promise<unknown>) =>
      work.then(
        () => 'done',
        (error: unknown) => String((error as RowkeyError).code),
      );
    for (const slow of ['write', 'remove'] as const)
      for (const when of ['before', 'after'] as const) {
        const play = async (at: number) => {
          const scene = await set();
          const fast = slow === 'write' ? 'remove' : 'write';
          let other = '';
          const interrupt = async () => {
            other = await codeOf(scene[fast](world.engine));
          };
          const client = interruptedHttpClient(at, interrupt, when);
          const own = await codeOf(scene[slow](world.engineThrough(client)));
          if (at > 0) outcomes.push([own, other].toSorted().join(' and '));
          return client.calls;
        };
        for (const at of samplePoints(await play(0), 3)) await play(at);
      }
    return outcomes;
  }

  test('never both succeed in one partition, where the check is exact', { tags: ['slow'] }, async () => {
    const outcomes = await race(async () => {
      const { site, gate } = await build();
      return {
        write: (engine) => engineWrite.createEntity(engine, gates, gate),
        remove: (engine) => engineWrite.deleteEntity(engine, sites, site),
      };
    });
    expect(outcomes.length).toBeGreaterThan(8);
    for (const outcome of outcomes) expect(['done and invalid-input', 'done and referenced']).toContain(outcome);
  });

  test('both succeed at most by a race of two partitions, which the check reports', { tags: ['slow'] }, async () => {
    const raced: Values[] = [];
    const outcomes = await race(async () => {
      const { site, visit } = await build();
      return {
        write: async (engine) => {
          await engineWrite.createEntity(engine, visits, visit);
          raced.push(visit);
        },
        remove: (engine) => engineWrite.deleteEntity(engine, sites, site),
      };
    });
    expect(new Set(outcomes)).toContain('done and referenced');
    await world.settle();
    const { findings: found } = await operationsCheck.verifyPage(world.engine, visits, {
      top: 1_000,
      repair: false,
      patience: 10,
    });
    const dangling = found.filter(({ kind }) => kind === 'dangling').map(({ row }) => row);
    for (const { visitId, siteCode } of raced) {
      const isThere = (await rowsOf(world.storage, 'sites')).some(({ code }) => code === siteCode);
      expect(dangling.includes(String(visitId)), String(visitId)).toBe(!isThere);
    }
  });
});

test('an entity that is being moved cannot be referred to yet, and is no finding of the check', async () => {
  const { site, gate } = await build();
  await create(gates, gate);
  const keys = { partitionKey: site.city, rowKey: 'site_A' };
  await world.storage.table('sites').updateEntity({ ...keys, MovingFrom: 'x' }, 'Merge');
  expect(await errorOf(create(gates, { ...gate, gateId: '2' }))).toMatchObject({ code: 'busy' });
  expect(await findings(gates, site.city)).toEqual([]);
  await world.storage.table('sites').updateEntity({ ...keys, MovingFrom: '' }, 'Merge');
  await create(gates, { ...gate, gateId: '2' });
});

test('a PUT that keeps a dangling reference is accepted, and one that sets another is not', async () => {
  const { site, visit } = await build();
  await create(visits, visit);
  await world.storage.table('sites').deleteEntity(site.city, 'site_A');
  await engineWrite.putEntity(world.engine, visits, visit, { ...visit, note: 'kept' });
  const error = await errorOf(engineWrite.putEntity(world.engine, visits, visit, { ...visit, siteCode: 'none' }));
  expect(error).toMatchObject({ code: 'invalid-input' });
});

describe('an entity that refers to itself and refuses deletes', () => {
  const one = { city: 'Rome', leaderId: 'ann' };
  const other = { city: 'Rome', leaderId: 'bo', ledBy: 'ann' };

  test('can be deleted, but not while another one refers to it, and not be moved', async () => {
    await create(leaders, one);
    await engineWrite.patchEntity(world.engine, leaders, one, { ledBy: 'ann' });
    await create(leaders, other);
    expect(await errorOf(engineWrite.deleteEntity(world.engine, leaders, one))).toMatchObject({ code: 'referenced' });
    await engineWrite.deleteEntity(world.engine, leaders, other);
    const moved = engineTransfer.requestMove(world.engine, leaders, one, { city: 'Oslo' });
    expect(await errorOf(moved)).toMatchObject({ code: 'referenced' });
    expect(await findings(leaders, 'Rome')).toEqual([]);
    expect(await engineRead.readEntity(world.engine, leaders, one)).toMatchObject({ values: { ledBy: 'ann' } });
    await engineWrite.deleteEntity(world.engine, leaders, one);
    expect(await errorOf(engineRead.readEntity(world.engine, leaders, one))).toMatchObject({ code: 'not-found' });
    // The first one may refer to itself when it is created.
    await create(leaders, { ...one, ledBy: 'ann' });
    expect(await errorOf(create(leaders, { ...one, leaderId: 'cy', ledBy: 'dee' }))).toMatchObject({
      code: 'invalid-input',
    });
    await engineWrite.deleteEntity(world.engine, leaders, one);
  });
});
