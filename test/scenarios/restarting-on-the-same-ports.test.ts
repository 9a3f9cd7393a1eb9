import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmulatorAccount, formatConnectionString, startAzurite } from '../../local/instance/azurite.ts';
import { signToken } from '../../local/instance/identity-provider.ts';
import { writePorts } from '../../local/instance/ports.ts';
import { readSecrets } from '../../local/instance/secrets.ts';
import { type Product, startProduct } from '../../local/instance/start-product.ts';
import { chooseFixedPorts } from '../fixed-ports.ts';
import { deployedApp as testApp } from '../fixtures/deployed-app.ts';
import { storageAccounts } from '../kit/storage.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { UNDER_FUNC } from '../under-func.ts';

/** The published emulator key, which earlier versions of this product used. */
const PUBLISHED_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const EMAIL = 'ann@contoso.com';
const employee = { department: 'Sales', employeeId: '000001', email: EMAIL, firstName: 'Ann', lastName: 'Lee' };

let folder: string;
const running: Product[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-ports-'));
});
afterAll(async () => {
  await Promise.all(running.map((product) => product.stop()));
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function start(data: string, storage?: { readonly connectionString: string }, accounts?: number) {
  const said: string[] = [];
  const log = (line: string) => said.push(line);
  const product = await startProduct({
    app: testApp,
    data,
    func: UNDER_FUNC,
    log,
    accounts,
    ...(storage ? { storage } : {}),
  });
  running.push(product);
  return { product, said };
}

function tokenFor({ instance: { issuer, audience } }: Product, data: string, role: string) {
  return signToken({ folder: data, issuer, audience, role, email: EMAIL });
}

async function ask(product: Product, path: string, { token, body }: { token: string; body?: object }) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
  return fetch(`${product.url}/api/${path}`, init);
}

const portsOf = ({ instance: { url, issuer, tables, queues, blobs } }: Product) =>
  [url, issuer, tables, queues, blobs].map((each) => new URL(each).port);

async function occupy(url: string) {
  const server = createServer().listen(Number(new URL(url).port), '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test.runIf(IS_EVERY_POINT)('instances get different ports, and a token and a grant survive a restart', async () => {
  const data = join(folder, 'one');
  await mkdir(data);
  await writePorts(data, await chooseFixedPorts());
  const others = ['two', 'three'].map((name) => start(join(folder, name)));
  const [{ product: first }, ...started] = await Promise.all([start(data), ...others]);
  const all = [first, ...started.map(({ product }) => product)];
  expect(new Set(all.flatMap(portsOf)).size).toBe(15);
  await Promise.all(started.map(({ product }) => product.stop()));
  const token = await tokenFor(first, data, 'hr');
  expect((await ask(first, 'employees', { token, body: employee })).status).toBe(201);
  const granted = await ask(first, 'grants', { token, body: { entity: 'employees', scope: 'own' } });
  const grant = (await granted.json()) as { url: string; token: string };
  await first.stop();

  const { product: second, said } = await start(data);
  expect(second.instance).toEqual(first.instance);
  expect(said.filter((line) => line.startsWith('Another program'))).toEqual([]);
  expect((await ask(second, 'employees/Sales/000001', { token })).status).toBe(200);
  const read = await fetch(`${grant.url}?${grant.token}`, { headers: { accept: 'application/json;odata=nometadata' } });
  expect(await read.json()).toMatchObject({ employeeId: '000001' });
  await second.stop();

  // Another program takes two of the ports.
  const { tables, issuer } = first.instance;
  const taken = await Promise.all([occupy(tables), occupy(issuer)]);
  const { product: third, said: complained } = await start(data);
  const [api, identity, table, queue, blob] = portsOf(third);
  expect([api, queue, blob]).toEqual([portsOf(first)[0], ...portsOf(first).slice(3)]);
  expect(complained.filter((line) => line.startsWith('Another program'))).toEqual([
    `Another program uses port ${new URL(tables).port}: the table service now listens on ${table}.`,
    `Another program uses port ${new URL(issuer).port}: the identity provider now listens on ${identity}.`,
  ]);
  for (const server of taken) server.close();
  await third.stop();
  expect(JSON.parse(await readFile(join(data, 'ports.json'), 'utf8'))).toMatchObject({ table: Number(table) });
});

test.runIf(IS_EVERY_POINT)(
  'keeps the data of a folder of an earlier version, and reports that its account key is new',
  async () => {
    const data = join(folder, 'older');
    const emulator = await startAzurite({
      folder: join(data, 'azurite'),
      accounts: [createEmulatorAccount(PUBLISHED_KEY)],
    });
    const { product: older } = await start(data, { connectionString: emulator.connectionString() });
    const body = employee;
    expect((await ask(older, 'employees', { token: await tokenFor(older, data, 'hr'), body })).status).toBe(201);
    await older.stop();
    await emulator.stop();
    for (const file of ['secrets.json', 'ports.json']) await rm(join(data, file));

    const { product, said } = await start(data);
    expect(said).toContainEqual(expect.stringMatching(/^An earlier version made the folder .*: its data is kept/));
    const read = await ask(product, 'employees/Sales/000001', { token: await tokenFor(product, data, 'reader') });
    expect(await read.json()).toMatchObject({ employeeId: '000001' });
    await product.stop();
    const { said: again } = await start(data);
    expect(again.filter((line) => line.startsWith('An earlier version'))).toEqual([]);
  },
);

test.runIf(IS_EVERY_POINT)(
  'keeps data in several storage accounts, and what was stored in one when there are more',
  async () => {
    const data = join(folder, 'several');
    const { product: alone } = await start(data);
    expect((await ask(alone, 'employees', { token: await tokenFor(alone, data, 'hr'), body: employee })).status).toBe(
      201,
    );
    await alone.stop();
    const { product: more } = await start(data, undefined, 3);
    expect(more.instance.accounts).toBe(3);
    const read = await ask(more, 'employees/Sales/000001', { token: await tokenFor(more, data, 'reader') });
    expect(await read.json()).toMatchObject({ employeeId: '000001' });
    await more.stop();

    const spread = join(folder, 'spread');
    const { product } = await start(spread, undefined, 3);
    const token = await tokenFor(product, spread, 'hr');
    const departments = Array.from({ length: 12 }, (_, index) => `D${index}`);
    for (const [index, department] of departments.entries()) {
      const body = { ...employee, department, employeeId: `00000${index}`.slice(-6), email: `e${index}@contoso.com` };
      expect((await ask(product, 'employees', { token, body })).status).toBe(201);
    }
    const { storageKey } = await readSecrets(spread);
    const { tables, queues, blobs } = product.instance;
    const partitionsOf = async (number: number) => {
      const account = createEmulatorAccount(storageKey, number);
      const at = (url: string) => url.replace('devstoreaccount1', account.name);
      const options = { tables: at(tables), queues: at(queues), blobs: at(blobs) };
      const storage = storageAccounts.openStorage({ connectionString: formatConnectionString(account, options) });
      // The console reads from each.
      expect((await storage.blobs.getProperties()).cors).toHaveLength(1);
      const rows = await Array.fromAsync(storage.table('employees').listEntities());
      return [...new Set(rows.map(({ partitionKey = '' }) => partitionKey))].filter((key) => departments.includes(key));
    };
    const partitions = await Promise.all([0, 1, 2].map(partitionsOf));
    expect(partitions.flat().toSorted()).toEqual(departments.toSorted());
    for (const each of partitions) expect(each.length).toBeGreaterThan(0);
    await product.stop();
    const { product: again } = await start(spread);
    expect(again.instance.accounts).toBe(3);
    await again.stop();
    await expect(start(spread, undefined, 2)).rejects.toThrow('is in 3 storage accounts');
  },
);
