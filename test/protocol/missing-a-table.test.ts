import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createRowkey, defineEntity, defineModel, interPartitionIndex } from '../../lib/index.ts';
import { linkedEntities } from '../fixtures/deploy.ts';
import { baseValues } from '../kit/base.ts';
import { engineConsume, engineCore, engineReconcile, engineWrite, type Message } from '../kit/engine.ts';
import { httpDoor } from '../kit/http.ts';
import { storageAccounts, storageQueues, storageTables } from '../kit/storage.ts';
import { testInvocation, testRequest } from '../lib/http/request.ts';
import { PATIENCE_MS } from '../patience.ts';
import { respondWith } from '../respond-with.ts';
import { testStorage } from '../storage.ts';
import { QUICK, rowsOf } from '../world.ts';

/** A table, queue or container of the model that is not deployed yet. */

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
const engine = engineCore.createEngine(storage);
const auth = { issuer: 'https://issuer.example/', audience: 'fleet', jwksUri: 'https://issuer.example/keys' };
const indexes = {
  plate: interPartitionIndex({ table: 'vehiclesbyplate', partition: '{plate#}', row: '{plate}', unique: true }),
  model: interPartitionIndex({ table: 'vehiclesbymodel', partition: '{model}', row: '{depot}_{vehicleId}' }),
};
const vehicles = defineEntity('vehicles', {
  schema: z.object({ depot: z.string(), vehicleId: z.string(), plate: z.string(), model: z.string() }),
  table: 'vehicles',
  key: { partition: '{depot}', row: '{vehicleId}' },
  indexes,
  access: { read: ['reader'], write: ['hr'] },
});
const model = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [vehicles] });
const key = { depot: 'north', vehicleId: '1' };
const van = { ...key, plate: 'AB 1', model: 'Van' };
const logged: string[] = [];
const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };
const consumer = { engine, entities: model.list, log };

/** A process that has not used storage yet. */
const start = () => createRowkey({ model, storage: { connectionString }, auth });
let rowkey: ReturnType<typeof start>;

beforeEach(async () => {
  logged.length = 0;
  await start().provision();
  await storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).clearMessages();
  for (const table of ['vehicles', 'vehiclesbyplate', 'vehiclesbymodel']) {
    await storageTables.dropTable(storage, table);
    await storageTables.createTable(storage, table);
  }
  rowkey = start();
});

async function takeMessage(over: Partial<Message> = {}): Promise<Message> {
  const [message] = await storageQueues.receiveMessages(storage, engineReconcile.INDEX_CHANGES_QUEUE, {
    limit: 1,
    hiddenFor: 600,
  });
  if (!message) throw new Error('No message is visible.');
  const { queue, id, insertedAt, text } = message;
  return { queue, id, attempts: 1, insertedAt, body: JSON.parse(text), ...over };
}
const poison = async () => (await engineConsume.listPoison(engine, { limit: 10 })).items;
const missing = (what: string) =>
  `Missing in the storage account: ${what}. To create what is missing, run npm run infra`;

test('an entity is stored while the table of an index is missing, and is indexed when the table exists', async () => {
  await storageTables.dropTable(storage, 'vehiclesbymodel');
  await rowkey.store.vehicles.create(van);
  await engineConsume.consumeIntent(consumer, await takeMessage({ attempts: engineConsume.MAX_ATTEMPTS }));
  expect(logged.join()).toContain(missing('table vehiclesbymodel'));
  expect(await poison()).toEqual([]);
  await expect(rowkey.store.vehicles.by.model({ model: 'Van' }).page()).rejects.toMatchObject({
    code: 'not-provisioned',
    message: expect.stringContaining('table vehiclesbymodel'),
  });

  // After a day of retries, the message waits for an operator.
  await rowkey.store.vehicles.update(key, { model: 'Bus' });
  await engineConsume.consumeIntent(consumer, await takeMessage({ insertedAt: Date.now() - baseValues.DAY_MS - 1 }));
  const [record] = await poison();
  expect(record).toMatchObject({ reason: expect.stringContaining('table vehiclesbymodel') });

  await storageTables.createTable(storage, 'vehiclesbymodel');
  await engineConsume.replayPoison(engine, record?.id ?? '');
  await engineConsume.consumeIntent(consumer, await takeMessage());
  const { items } = await rowkey.store.vehicles.by.model({ model: 'Bus' }).page();
  expect(items).toEqual([{ ...van, model: 'Bus' }]);
});

test('a write whose unique value cannot be claimed is rejected and leaves nothing', { tags: ['slow'] }, async () => {
  await storageTables.dropTable(storage, 'vehiclesbyplate');
  await expect(rowkey.store.vehicles.create(van)).rejects.toMatchObject({
    code: 'not-provisioned',
    message: expect.stringContaining(missing('table vehiclesbyplate')),
  });
  expect(await rowkey.store.vehicles.get(key)).toBeUndefined();

  const quick = engineCore.createEngine(storage, { timing: QUICK });
  await storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).clearMessages();
  await expect(engineWrite.createEntity(quick, linkedEntities(model).vehicles, van)).rejects.toThrow(
    'table vehiclesbyplate',
  );
  await engineConsume.consumeIntent(
    consumer,
    await vi.waitFor(() => takeMessage(), { timeout: PATIENCE_MS, interval: 100 }),
  );
  expect(logged.filter((line) => line.includes('failed'))).toEqual([]);
});

test('a write is rejected while the table of the entity is missing, and its claim is released', async () => {
  await storageTables.dropTable(storage, 'vehicles');
  await expect(rowkey.store.vehicles.create(van)).rejects.toMatchObject({
    code: 'not-provisioned',
    message: expect.stringContaining(missing('table vehicles')),
  });
  expect(await rowsOf(storage, 'vehiclesbyplate')).toEqual([]);
  // An intent of unknown outcome would stay, hidden.
  const { approximateMessagesCount } = await storage.queue(engineReconcile.INDEX_CHANGES_QUEUE).getProperties();
  expect(approximateMessagesCount).toBe(0);
});

test('the log and health name what is missing, until it exists', async () => {
  const health = async () => {
    const { status, body } = await respondWith(rowkey.runtime.app, httpDoor.healthRoute)(
      testRequest({ path: 'health' }),
      testInvocation().invocation,
    );
    return { status, body: JSON.parse(String(body)) };
  };
  await storageTables.dropTable(storage, 'vehiclesbymodel');
  await storage.queue('transfers').delete();
  await storage.blobs.getContainerClient('audit').delete();
  await rowkey.runtime.readyEngine(log);
  expect(logged.join()).toContain(missing('table vehiclesbymodel, queue transfers, container audit'));
  // Storage that takes longer than three seconds is not ok.
  await expect.poll(health).toMatchObject({
    status: 503,
    body: {
      status: 'degraded',
      storage: 'ok',
      resources: 'missing',
      hint: expect.stringContaining(missing('table vehiclesbymodel, queue transfers, container audit')),
    },
  });
  await rowkey.provision();
  await expect.poll(health).toEqual({
    status: 200,
    body: { status: 'ok', storage: 'ok', declaration: 'ok', settings: 'ok', resources: 'ok' },
  });
});

test('health names a table that disappears while the app runs, once a request has met it', async () => {
  const api = httpDoor.createApiHandler(
    () => ({ ...rowkey.runtime.app(), authenticate: async () => ({ subject: 'ann', roles: ['reader'], claims: {} }) }),
    httpDoor.createRoutes(model),
  );
  const get = async (path: string) => {
    const request = testRequest({ path, params: { path }, headers: { authorization: 'Bearer x' } });
    const { status, body } = await api(request, testInvocation().invocation);
    return { status, body: JSON.parse(await new Response(body as string).text()) };
  };
  await expect.poll(() => get('health')).toMatchObject({ status: 200 });
  await storageTables.dropTable(storage, 'vehiclesbymodel');
  expect(await get('vehicles/by/model/Van')).toMatchObject({ status: 503, body: { code: 'not-provisioned' } });
  await expect
    .poll(() => get('health'))
    .toMatchObject({
      status: 503,
      body: { resources: 'missing', hint: expect.stringContaining(missing('table vehiclesbymodel')) },
    });
  await storageTables.createTable(storage, 'vehiclesbymodel');
  await expect.poll(() => get('health')).toMatchObject({ status: 200, body: { resources: 'ok' } });
});
