import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { createRowkey, defineEntity, defineModel, intraPartitionIndex } from '../../lib/index.ts';
import {
  type LocalIdentityProvider,
  signToken,
  startIdentityProvider,
} from '../../local/instance/identity-provider.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageTables } from '../kit/storage.ts';
import { PATIENCE_MS } from '../patience.ts';
import { testStorage } from '../storage.ts';

/** What a process does when it starts, before its first request. */

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
const engine = engineCore.createEngine(storage);
const declaration = {
  schema: z.object({ depot: z.string(), vehicleId: z.string() }),
  table: 'vehicles',
  key: { partition: '{depot}', row: 'v_{vehicleId}' },
  access: { read: ['hr'], write: ['hr'] },
} as const;
const byId = { byId: intraPartitionIndex({ row: 'id_{vehicleId}' }) };
const roles = { roles: ['hr'], operatorRole: 'hr' };
const model = defineModel({ ...roles, entities: [defineEntity('vehicles', declaration)] });
const withIndex = defineModel({ ...roles, entities: [defineEntity('vehicles', { ...declaration, indexes: byId })] });
const plate = declaration.schema.extend({ plate: z.string().optional() });
const withPlate = defineModel({ ...roles, entities: [defineEntity('vehicles', { ...declaration, schema: plate })] });

let folder: string;
let identity: LocalIdentityProvider;
let token: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-runtime-'));
  identity = await startIdentityProvider({ folder });
  const { issuer, audience } = identity;
  token = `Bearer ${await signToken({ folder, issuer, audience, role: 'hr' })}`;
});
afterAll(async () => {
  await identity.stop();
  await rm(folder, { recursive: true });
});

/** Serves until the end of the test and returns the address. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Holds the first `failing` requests until `fail`, and counts all. */
function failFirst(failing: number, otherwise: RequestListener) {
  const held: ServerResponse[] = [];
  let asked = 0;
  const listener: RequestListener = (incoming, response) => {
    asked += 1;
    if (asked > failing) otherwise(incoming, response);
    else held.push(response);
  };
  const fail = () => {
    for (const response of held) response.writeHead(400).end();
  };
  return { listener, asked: () => asked, fail };
}

/** The keys of the issuer at another address. */
async function serveKeys({ failing = 0 } = {}) {
  const keys = await (await fetch(identity.jwksUri)).text();
  const { listener, ...control } = failFirst(failing, (_, response) => response.end(keys));
  return { ...control, jwksUri: `${await serve(listener)}/keys` };
}

/** The account with its tables at another address, where the first query of the stored model fails. */
async function serveTables() {
  const { origin, pathname } = new URL(storage.tables.url);
  const forward: RequestListener = (incoming, response) => {
    const { method = 'GET', url = '', headers } = incoming;
    const forwarded = request(new URL(url, origin), { method, headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(response);
    });
    incoming.pipe(forwarded);
  };
  const { listener, ...control } = failFirst(1, forward);
  const address = await serve((incoming, response) =>
    incoming.url?.includes('/system()') ? listener(incoming, response) : forward(incoming, response),
  );
  const tables = connectionString.replace(/TableEndpoint=[^;]*/, `TableEndpoint=${address}${pathname}`);
  return { ...control, connectionString: tables };
}

function createProcess(
  of: Parameters<typeof createRowkey>[0]['model'],
  { jwksUri = identity.jwksUri, connectionString: connection = connectionString } = {},
) {
  const { issuer, audience } = identity;
  return createRowkey({ model: of, storage: { connectionString: connection }, auth: { issuer, audience, jwksUri } });
}

function createLog() {
  const logged: string[] = [];
  return {
    logged,
    warn: (text: string) => logged.push(text),
    error: (text: string) => logged.push(text),
  };
}

const storedNames = async () => [...(await operationsModel.readShapes(engine)).keys()];
const eventually = { timeout: PATIENCE_MS, interval: 20 };

beforeEach(async () => {
  await storageTables.dropTable(storage, 'system');
  await createProcess(model).provision();
});

describe('a process that starts', () => {
  test('fetches the keys and compares the model before a request, which repeats neither', async () => {
    const keys = await serveKeys();
    const { runtime, authenticate } = createProcess(model, keys);
    expect(keys.asked()).toBe(0);
    await runtime.start();
    await vi.waitFor(async () => expect([await storedNames(), keys.asked()]).toEqual([['vehicles'], 1]), eventually);
    await authenticate(token);
    await runtime.readyEngine(createLog());
    expect(keys.asked()).toBe(1);
    // Another comparison would store the model again.
    await storageTables.dropTable(storage, 'system');
    await createProcess(model).provision();
    await runtime.readyEngine(createLog());
    expect(await storedNames()).toEqual([]);
  });

  test('leaves what it found to the log of the first request, once', async () => {
    await createProcess(model).runtime.readyEngine(createLog());
    const { runtime } = createProcess(withIndex);
    await runtime.start();
    const [first, second] = [createLog(), createLog()];
    await runtime.readyEngine(first);
    await runtime.readyEngine(second);
    expect([first.logged, second.logged]).toEqual([
      [expect.stringContaining('The index byId of vehicles is not built')],
      [],
    ]);
  });

  test('rejects every request if nobody agreed to a change of the model', async () => {
    await createProcess(withPlate).runtime.readyEngine(createLog());
    const { runtime } = createProcess(model);
    await runtime.start();
    for (let times = 0; times < 2; times += 1)
      await expect(runtime.readyEngine(createLog())).rejects.toMatchObject({
        code: 'wrong-setting',
        message: expect.stringContaining('the field plate was removed'),
      });
  });

  test('fetches the keys again for a request that waited for a failing fetch', async () => {
    const keys = await serveKeys({ failing: 1 });
    const { runtime, authenticate } = createProcess(model, keys);
    await runtime.start();
    await vi.waitFor(() => expect(keys.asked()).toBe(1), eventually);
    const caller = authenticate(token);
    keys.fail();
    expect(await caller).toMatchObject({ roles: ['hr'] });
    expect(keys.asked()).toBe(2);
  });

  test('compares the model again for a request that waited for a failing comparison', async () => {
    const tables = await serveTables();
    const { runtime } = createProcess(model, tables);
    await runtime.start();
    await vi.waitFor(() => expect(tables.asked()).toBe(1), eventually);
    const ready = runtime.readyEngine(createLog());
    tables.fail();
    await ready;
    expect([await storedNames(), tables.asked()]).toEqual([['vehicles'], 2]);
  });

  test('compares the model again, and looks for tables again, if storage had none of them', async () => {
    await storageTables.dropTable(storage, 'system');
    await storageTables.dropTable(storage, 'vehicles');
    const { runtime, provision } = createProcess(model);
    await expect(runtime.readyEngine(createLog())).rejects.toMatchObject({ code: 'not-provisioned' });
    await provision();
    const log = createLog();
    await runtime.readyEngine(log);
    expect([await storedNames(), log.logged]).toEqual([['vehicles'], []]);
  });

  test('creates what is missing in the emulator before it compares the model', async () => {
    await storageTables.dropTable(storage, 'system');
    await storageTables.dropTable(storage, 'vehicles');
    await storage.queue('transfers').delete();
    await storage.container('audit').delete();
    const { runtime } = createProcess(model);
    await runtime.start();
    const log = createLog();
    await runtime.readyEngine(log);
    expect([await storedNames(), log.logged]).toEqual([['vehicles'], []]);
    expect(await runtime.app().findMissing()).toEqual([]);
  });

  test('creates nothing in an account that is not on this machine', () => {
    const connection = (host: string) =>
      `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=a2V5;TableEndpoint=https://${host}/a;QueueEndpoint=https://${host}/a;BlobEndpoint=https://${host}/a;`;
    const isLocal = (text: string) =>
      storageAccounts.isOnThisMachine(storageAccounts.openStorage({ connectionString: text }));
    expect(['127.0.0.1:10002', 'localhost', '[::1]:1'].map((host) => isLocal(connection(host)))).toEqual([
      true,
      true,
      true,
    ]);
    expect(isLocal('UseDevelopmentStorage=true')).toBe(true);
    for (const host of ['a.table.core.windows.net', 'localhost.contoso.com', '127.0.0.1.contoso.com'])
      expect(isLocal(connection(host)), host).toBe(false);
  });

  test('sends no request if a setting is wrong', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    onTestFinished(() => error.mockRestore());
    const keys = await serveKeys();
    const { issuer, audience } = identity;
    const auth = { issuer, audience, jwksUri: keys.jwksUri };
    const { runtime } = createRowkey({ model, storage: { connectionString }, auth, console: { clientId: '' } });
    await runtime.start();
    await expect(runtime.readyEngine(createLog())).rejects.toMatchObject({ code: 'wrong-setting' });
    expect([await storedNames(), keys.asked()]).toEqual([[], 0]);
  });
});
