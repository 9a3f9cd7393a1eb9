import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TableClient } from '@azure/data-tables';
import { HttpRequest, InvocationContext } from '@azure/functions';
import { employees, model } from '../fixtures/model.ts';
import { defineCodec } from '../kit/define.ts';
import { engineCore, engineRead } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { type App, httpDoor } from '../kit/http.ts';
import { storageAccounts, storageKeys, storageRows } from '../kit/storage.ts';
import { respondWith } from '../respond-with.ts';
import { reportCpu, respondWithRow, toConnectionString } from './cpu-rounds.ts';

/**
 * Prints the CPU time of a GET by key, layer by layer, as a ratio to the SDK's `getEntity` of the same row. Storage is a stub in
 * this process, so neither a network nor an emulator is measured. For a profile: `node --cpu-prof` with this file.
 */

const CONNECTION = toConnectionString('http://h/a');
const VALUES = {
  department: 'Sales',
  employeeId: '000001',
  email: 'ann@contoso.com',
  firstName: 'Ann',
  lastName: 'Lee',
};

const folder = await mkdtemp(join(tmpdir(), 'rowkey-cpu-'));
try {
  const keyFile = join(folder, 'keys.json');
  await storageKeys.rotateLocalKey(keyFile);
  const keys = storageKeys.createLocalKeyRing(keyFile);
  const sealed = await featureUpkeep.seal({ keys }, employees, VALUES, { nationalId: '123' });
  const properties = defineCodec.toProperties(employees, { ...VALUES, ...sealed }, { WriteId: 'w', Incarnation: 'i' });
  const httpClient = respondWithRow({ PartitionKey: 'Sales', RowKey: 'empid_000001', ...properties });
  const storage = storageAccounts.openStorage({ connectionString: CONNECTION, httpClient });
  const engine = engineCore.createEngine(storage, { keys });
  const plain = TableClient.fromConnectionString(CONNECTION, 'employees', {
    httpClient,
    allowInsecureConnection: true,
  });
  const [route] = httpDoor.entityReadRoutes(employees);
  if (!route) throw new Error('The entity has no route.');
  const handler = respondWith(() => appOf(engine), route);
  const row = { table: 'employees', partition: 'Sales', row: 'empid_000001' };
  await reportCpu({
    'getEntity of the SDK': () => plain.getEntity(row.partition, row.row),
    readRow: () => storageRows.readRow(storage, row),
    readEntity: () => engineRead.readEntity(engine, employees, VALUES),
    'handler of the route': async () => {
      const { status } = await handler(createRequest(), new InvocationContext());
      if (status !== 200) throw new Error(`The handler returned ${status}.`);
    },
  });
} finally {
  await rm(folder, { recursive: true });
}

function appOf(engine: App['engine']): App {
  const caller = { subject: 'ann', roles: ['hr'], claims: {} };
  return {
    engine,
    entities: model.list,
    audit: { append: async () => undefined, catchUp: async () => undefined },
    ready: async () => undefined,
    findMissing: async () => [],
    authenticate: async () => caller,
    signer: () => {
      throw new Error('Nothing is signed.');
    },
  } as unknown as App;
}

function createRequest(): HttpRequest {
  return new HttpRequest({
    method: 'GET',
    url: 'http://h/api/employees/Sales/000001',
    headers: { authorization: `Bearer ${'x'.repeat(700)}` },
    params: { department: 'Sales', employeeId: '000001' },
  });
}
