import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, type Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { collectAllOrphans } from '../collect-all-orphans.ts';
import { deploy } from '../fixtures/deploy.ts';
import { employees, logins, model } from '../fixtures/model.ts';
import { accessChecks } from '../kit/access.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces } from '../kit/define.ts';
import { engineConsume, engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { featureFiles, featureUpkeep } from '../kit/features.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageBlobs, storageKeys, storageRows, storageTables } from '../kit/storage.ts';
import { countedMetrics } from '../metrics.ts';
import { log } from '../silent-log.ts';
import { testStorage } from '../storage.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody, type World } from '../world.ts';

/**
 * Four apps on one account: without a prefix, with two of which one begins the other, and with one that is the name of an
 * entity. Without a separator, the tables of `blogins` of the app `a` would be those of `logins` of the app `ab`.
 */
const PREFIXES = ['', 'a', 'ab', 'logins'] as const;
type Prefix = (typeof PREFIXES)[number];

const note = defineEntity('notes', {
  schema: z.object({ board: z.string(), noteId: z.string(), changedOn: z.iso.date() }),
  table: 'notes',
  key: { partition: '{board}', row: '{noteId}' },
  expiry: { days: 2, clock: 'changedOn' },
  access: { read: [], write: [] },
});
const blogin = defineEntity('blogins', {
  schema: z.object({ user: z.string(), at: z.iso.datetime() }),
  table: 'blogins',
  key: { partition: '{user}', row: '{at}' },
  period: { per: 'day', field: 'at', keep: 60 },
  access: { read: [], write: [] },
});
const { notes, blogins } = deploy(note, blogin);

const worlds = new Map<Prefix, World>();
beforeAll(async () => {
  for (const prefix of PREFIXES) worlds.set(prefix, await openWorld(import.meta.url, [notes, blogins], { prefix }));
});
const worldOf = (prefix: Prefix): World => worlds.get(prefix) ?? expect.fail('every prefix has a world');
const inEach = <Result>(work: (world: World, prefix: Prefix) => Promise<Result>) =>
  Promise.all(PREFIXES.map((prefix) => work(worldOf(prefix), prefix)));
/** The same of each app but one, before and after work in that one. */
async function expectOthersUnchanged(
  prefix: Prefix,
  see: (world: World) => Promise<unknown>,
  work: () => Promise<void>,
) {
  const others = PREFIXES.filter((other) => other !== prefix);
  const seen = () => Promise.all(others.map((other) => see(worldOf(other))));
  const before = await seen();
  await work();
  expect(await seen()).toEqual(before);
}

const counted = countedMetrics();
const account = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });

test('every table, queue and container has the prefix of its app, and the declared name without one', async () => {
  const { tables, queues, containers } = operationsModel.resourcesOf([...model.list, notes, blogins], Date.now());
  const names = async (listed: AsyncIterable<{ name?: string }>) =>
    (await Array.fromAsync(listed, ({ name = '' }) => name)).toSorted();
  const expected = (own: readonly string[], separator: string) =>
    PREFIXES.flatMap((prefix) => own.map((name) => (prefix ? prefix + separator + name : name))).toSorted();
  expect(await names(account.tables.listTables())).toEqual(expected(tables, '0'));
  expect(await names(account.queues.listQueues())).toEqual(expected(queues, '-'));
  expect(await names(account.blobs.listContainers())).toEqual(expected(containers, '-'));
});

test('what is missing is named as the account would have it', async () => {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) }, 'gone');
  const wanted = { tables: ['notes'], queues: ['transfers'], containers: ['large'] };
  expect((await storageTables.compareResources(storage, wanted)).missing).toEqual([
    'table gone0notes',
    'queue gone-transfers',
    'container gone-large',
  ]);
  const write = storageRows.tryAction(
    storage,
    { table: 'notes', partition: 'p' },
    { kind: 'insert', row: 'r', properties: {} },
  );
  await expect(write).rejects.toMatchObject({
    code: 'not-provisioned',
    message: expect.stringContaining('table gone0notes'),
  });
});

test('the same entity in each app has its own values, unique index rows and messages', async () => {
  const one = somebody({ department: 'Shared' });
  const write = async ({ queued }: World, prefix: Prefix) =>
    engineWrite.createEntity(queued, employees, { ...one, firstName: `of ${prefix}` });
  await inEach(write);
  for (const prefix of PREFIXES) {
    await expectOthersUnchanged(
      prefix,
      async ({ storage }) => (await storage.queue('index-changes').getProperties()).approximateMessagesCount,
      () => worldOf(prefix).settle(),
    );
    const { engine, storage } = worldOf(prefix);
    expect((await engineRead.readEntity(engine, employees, one)).values).toMatchObject({ firstName: `of ${prefix}` });
    expect(await rowsOf(storage, 'employeesbyemail')).toMatchObject([{ firstName: `of ${prefix}` }]);
    await expectIndexesToAgree(storage, employees);
  }
});

test('an archive and a delete in one app leave the entity of the others', { tags: ['slow'] }, async () => {
  const [archived, deleted] = [somebody({ department: 'Left' }), somebody({ department: 'Left' })];
  const there = (one: Values) => async (world: World) =>
    (await engineRead.readEntity(world.engine, employees, one)).values;
  await inEach(async ({ engine, settle }) => {
    for (const one of [archived, deleted]) await engineWrite.createEntity(engine, employees, one);
    await settle();
  });
  await expectOthersUnchanged('a', there(archived), async () => {
    await engineTransfer.requestArchive(worldOf('a').engine, employees, archived, undefined);
    await worldOf('a').settle();
  });
  await expectOthersUnchanged('ab', there(deleted), async () => {
    await engineWrite.deleteEntity(worldOf('ab').engine, employees, deleted, {});
    await worldOf('ab').settle();
  });
  expect(await Promise.all(PREFIXES.map((prefix) => countOf(prefix, 'formeremployees')))).toEqual([0, 1, 0, 0]);
  await inEach(({ storage }) => expectIndexesToAgree(storage, employees));
});

async function countOf(prefix: Prefix, table: string): Promise<number> {
  return (await rowsOf(worldOf(prefix).storage, table)).length;
}

describe('the timers of one app', () => {
  const old = new Date(Date.now() - 90 * baseValues.DAY_MS).toISOString().slice(0, 10).replaceAll('-', '');
  /** Without a prefix, a listing may have tables of the prefix `logins`. */
  const periods = async ({ storage }: World) =>
    (await Promise.all([logins, blogins].map(({ table }) => storageTables.listTables(storage, table))))
      .flat()
      .filter((name) => /^b?logins\d{8}$/.test(name));

  test.each(PREFIXES)('drop old tables of their own periods only: prefix "%s"', async (prefix) => {
    await inEach(async ({ storage }) => {
      for (const entity of [logins, blogins]) await storageTables.createTable(storage, `${entity.table}${old}`);
    });
    await expectOthersUnchanged(prefix, periods, async () => {
      const { engine } = worldOf(prefix);
      for (const entity of [logins, blogins])
        expect(await featureUpkeep.rollPeriods(engine, entity)).toMatchObject({ dropped: [`${entity.table}${old}`] });
    });
    const left = await periods(worldOf(prefix));
    expect(left).not.toEqual([]);
    expect(left.filter((name) => name.endsWith(old))).toEqual([]);
  });

  test.each(PREFIXES)('expire their own entities only: prefix "%s"', async (prefix) => {
    const one = { board: 'shared', noteId: randomUUID() };
    await inEach(({ engine }) =>
      engineWrite.createEntity({ ...engine, now: () => Date.now() - 5 * baseValues.DAY_MS }, notes, one),
    );
    await expectOthersUnchanged(
      prefix,
      async ({ storage }) => [await rowsOf(storage, 'notes'), await rowsOf(storage, 'notesexpiry')],
      async () => {
        const { engine, settle } = worldOf(prefix);
        await featureUpkeep.expireEntities(engine, notes, { until: Number.POSITIVE_INFINITY });
        await settle();
      },
    );
    expect(JSON.stringify(await rowsOf(worldOf(prefix).storage, 'notes'))).not.toContain(one.noteId);
  });

  test.each(PREFIXES)('delete their own orphans only: prefix "%s"', async (prefix) => {
    const photos = ({ storage }: World) =>
      Array.fromAsync(storageBlobs.listContainer(storage, 'photos'), ({ name }) => name);
    const one = somebody({ department: 'Pictured' });
    const address = definePlaces.addressOf(employees, one);
    const orphan = { container: 'photos', name: engineRead.createBlobName(address, 'photo') };
    await inEach(async ({ engine, storage }) => {
      await engineWrite.createEntity(engine, employees, one);
      await featureFiles.putAttachment(engine, { entity: employees, key: one, field: 'photo' }, PNG);
      await storageBlobs.writeBlob(storage, orphan, PNG, {
        type: 'image/png',
        metadata: engineRead.toReferrer(address),
      });
    });
    await expectOthersUnchanged(prefix, photos, async () => {
      const { engine } = worldOf(prefix);
      await collectAllOrphans({ ...engine, now: () => Date.now() + 2 * baseValues.DAY_MS }, model.list);
    });
    const photo = (await engineRead.readEntity(worldOf(prefix).engine, employees, one)).values.photo;
    const after = await photos(worldOf(prefix));
    expect(after).toContain(Object(photo).blob);
    expect(after).not.toContain(orphan.name);
  });

  test.each(PREFIXES)(
    'find what is inconsistent in their own tables only: prefix "%s"',
    { tags: ['slow'] },
    async (prefix) => {
      const one = somebody({ department: 'Verified' });
      await inEach(({ engine }) => engineWrite.createEntity(engine, employees, one));
      const { storage } = worldOf(prefix);
      const copy = { partition: 'Verified', row: `email_${one.email}` };
      await storageRows.tryAction(
        storage,
        { table: 'employees', partition: copy.partition },
        { kind: 'delete', row: copy.row },
      );
      const found = await inEach(async ({ engine }) => {
        const { findings } = await operationsCheck.verifyPage(engine, employees, {
          top: 1_000,
          repair: true,
          patience: 0,
        });
        return findings.length;
      });
      expect(found).toEqual(PREFIXES.map((other) => (other === prefix ? 1 : 0)));
      await inEach(({ storage: each }) => expectIndexesToAgree(each, employees));
    },
  );

  test.each(PREFIXES)('record messages of their own poison queues only: prefix "%s"', async (prefix) => {
    const listed = async ({ engine }: World) => (await engineConsume.listPoison(engine, { limit: 100 })).items.length;
    await inEach(({ storage }) => storage.queue('transfers-poison').sendMessage('nonsense'));
    await counted('rowkey.poison.recorded');
    await expectOthersUnchanged(prefix, listed, async () => {
      const { engine } = worldOf(prefix);
      await engineConsume.drainQueues({ engine, entities: model.list, log }, { until: Date.now() + 60_000 });
    });
    const items = (await engineConsume.listPoison(worldOf(prefix).engine, { limit: 100 })).items;
    expect(items).toMatchObject([{ queue: 'transfers', text: 'nonsense' }]);
    // Operators see the queues of the account.
    const queue = prefix === '' ? 'transfers' : `${prefix}-transfers`;
    expect(await counted('rowkey.poison.recorded')).toEqual([{ by: { queue }, much: 1 }]);
    await inEach(async ({ storage }) => {
      await storage.queue('transfers-poison').clearMessages();
      for (const { partitionKey, rowKey } of await rowsOf(storage, 'poison'))
        await storage.table('poison').deleteEntity(String(partitionKey), String(rowKey));
    });
  });
});

test('the audit log of each app has its own records', async () => {
  const now = Date.now();
  const at = new Date(now).toISOString();
  const change = { operation: 'create', entity: 'employees', table: 'employees', partition: 'x', row: 'y' } as const;
  await inEach(({ engine }, prefix) =>
    operationsCheck.createAuditLog(engine).append([{ id: randomUUID(), by: prefix, at, fields: [], ...change }]),
  );
  const records = await inEach(({ engine }) =>
    operationsCheck.readChanges(engine, { from: now - baseValues.HOUR_MS, to: now + baseValues.HOUR_MS, limit: 10 }),
  );
  expect(records.map(({ items }) => items.map(({ by }) => by))).toEqual(PREFIXES.map((prefix) => [prefix]));
});

test('a grant opens the table of its app, and an upload its container', async () => {
  const one = somebody({ department: 'Granted' });
  await inEach(({ engine }, prefix) =>
    engineWrite.createEntity(engine, employees, { ...one, firstName: `of ${prefix}` }),
  );
  const address = definePlaces.addressOf(employees, one);
  const accept = { headers: { accept: 'application/json;odata=nometadata' } };
  const tokens = await inEach(async ({ storage }) =>
    storageKeys.tableSasSigner(storage).sign(accessChecks.grantFor(employees, address, { now: Date.now() })),
  );
  for (const [index, prefix] of PREFIXES.entries()) {
    const read = await fetch(
      `${(await storageKeys.locateRow(worldOf(prefix).storage, address)).url}?${tokens[index]}`,
      accept,
    );
    expect(await read.json()).toMatchObject({ firstName: `of ${prefix}` });
    for (const other of PREFIXES.filter((each) => each !== prefix)) {
      const refused = await fetch(
        `${(await storageKeys.locateRow(worldOf(other).storage, address)).url}?${tokens[index]}`,
        accept,
      );
      expect(refused.status).toBe(403);
    }
  }
  const times = {
    permissions: storageBlobs.UPLOAD_PERMISSIONS,
    startsAt: new Date(Date.now() - 60_000),
    expiresAt: new Date(Date.now() + 60_000),
  };
  const name = randomUUID();
  const upload = await storageBlobs.signBlobUrl(worldOf('ab').storage, { container: 'uploads', name }, times);
  const put = (url: string) => fetch(url, { method: 'PUT', body: 'x', headers: { 'x-ms-blob-type': 'BlockBlob' } });
  expect((await put(upload.replace('/ab-uploads/', '/a-uploads/'))).status).toBe(403);
  expect((await put(upload)).status).toBe(201);
  const uploads = await inEach(({ storage }) =>
    Array.fromAsync(storageBlobs.listContainer(storage, 'uploads'), (blob) => blob.name),
  );
  expect(uploads).toEqual(PREFIXES.map((prefix) => (prefix === 'ab' ? [name] : [])));
});

test('a message that may succeed goes back to the queue of its app', async () => {
  const { engine, storage } = worldOf('a');
  const body = { version: 1, intent: 'back', entity: 'employees', table: 'employees', items: [] };
  const message = { queue: 'index-changes-poison', id: randomUUID(), attempts: 5, insertedAt: Date.now(), body };
  const count = async (world: World) =>
    (await world.storage.queue('index-changes').getProperties()).approximateMessagesCount;
  await inEach(({ settle }) => settle());
  await expectOthersUnchanged('a', count, () =>
    engineConsume.consumePoison({ engine, entities: model.list, log }, message),
  );
  expect(await count(worldOf('a'))).toBeGreaterThan(0);
  await storage.queue('index-changes').clearMessages();
});
