import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { TableClient } from '@azure/data-tables';
import { QueueServiceClient } from '@azure/storage-queue';
import { startAzurite } from '../../local/instance/azurite.ts';
import { type FunctionsHost, startFunctionsHost } from '../../local/instance/functions-host.ts';
import { signToken, startIdentityProvider } from '../../local/instance/identity-provider.ts';
import { endChild, spawnScript } from '../../local/instance/spawn-child.ts';
import { buildFixtures } from '../fixtures/build.ts';
import { deployedApp } from '../fixtures/deployed-app.ts';
import { model } from '../fixtures/model.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageKeys, storageTables } from '../kit/storage.ts';
import type { Server } from './http.ts';
import { waitUntil } from './measure.ts';
import { createPlainResources } from './plain.ts';

/** A running server and its storage account on the emulator, which all servers share. */
export interface Measured extends Server {
  readonly process: number;
  readonly storage: string;
}

export interface Servers {
  /** A folder that is deleted at the end. */
  readonly folder: string;
  readonly product: Measured;
  /** The product, whose writers leave every index entry to the queue. */
  readonly queued: Measured;
  /** The plain code behind a bare HTTP handler. */
  readonly plain: Measured;
  /** The plain code as an Azure function, under the host of the product. */
  readonly plainFunction: Measured;
  stop(): Promise<void>;
}

const INSECURE = { allowInsecureConnection: true };
/** The tables of the plain code. */
const PLAIN_TABLES = ['plainemployees', 'plainbyemail', 'plainbyid', 'plainbylastname', 'plainrows', 'plainentries'];

/** Builds the apps, and starts all servers on one new emulator. */
export async function startServers(): Promise<Servers> {
  const apps = { product: deployedApp.folder, queued: appFolder('queued'), plain: appFolder('plain') };
  await buildFixtures();
  await buildFixtures({ ...deployedApp, folder: apps.queued }, '../bench/queued-functions.ts');
  await buildFixtures({ ...deployedApp, folder: apps.plain }, '../bench/plain-functions.ts');
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-bench-'));
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const stop = async () => {
    for (const each of stops.toReversed()) await each();
  };
  try {
    const data = join(folder, 'emulator');
    await mkdir(data);
    const account = (name: string) => ({ name, key: randomBytes(64).toString('base64') });
    const accounts = [account('product'), account('queued'), account('plain')] as const;
    const azurite = await startAzurite({ folder: data, accounts: [...accounts] });
    stops.push(azurite.stop);
    const identity = await startIdentityProvider({ folder });
    stops.push(identity.stop);
    const keyFile = join(folder, 'keys.json');
    await storageKeys.rotateLocalKey(keyFile);
    const { issuer, audience, jwksUri } = identity;
    const settings = {
      KEY_ENCRYPTION_KEY_FILE: keyFile,
      TOKEN_ISSUER: issuer,
      TOKEN_AUDIENCE: audience,
      TOKEN_JWKS_URI: jwksUri,
    };
    const token = await signToken({ folder, issuer, audience, role: 'hr' });
    const startHost = async (app: string, storage: string): Promise<Measured> => {
      const host = await startFunctionsHost({
        app,
        port: 0,
        settings: { ...settings, AzureWebJobsStorage: storage },
        func: false,
        log: (line) => void (/\[(error|warning)\]/.test(line) && console.error(line)),
      });
      stops.push(host.stop);
      await waitUntil(() => isHealthy(host), `the health of ${app}`);
      return { url: `${host.url}/api`, token, process: Number(host.process.pid), storage };
    };
    const [productStorage, queuedStorage, plainStorage] = accounts.map(({ name }) => azurite.connectionString(name));
    for (const connectionString of [productStorage, queuedStorage])
      await storageTables.provision(
        storageAccounts.openStorage({ connectionString: String(connectionString) }),
        operationsModel.resourcesOf(model.list, Date.now()),
      );
    await createPlainResources(String(plainStorage));
    for (const table of PLAIN_TABLES)
      await TableClient.fromConnectionString(String(plainStorage), table, INSECURE).createTable();
    const product = await startHost(apps.product, String(productStorage));
    const queued = await startHost(apps.queued, String(queuedStorage));
    const plainFunction = await startHost(apps.plain, String(plainStorage));
    const plain = await startPlainServer(String(plainStorage), stops);
    return { folder, product, queued, plain, plainFunction, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function appFolder(name: string): string {
  return fileURLToPath(new URL(`../../dist/bench-${name}`, import.meta.url));
}

async function isHealthy({ url }: FunctionsHost): Promise<boolean> {
  const response = url ? await fetch(`${url}/api/health`).catch(() => undefined) : undefined;
  return response?.ok === true;
}

async function startPlainServer(storage: string, stops: (() => Promise<unknown>)[]): Promise<Measured> {
  const script = fileURLToPath(new URL('plain-server.ts', import.meta.url));
  const child = spawnScript(script, [], { env: { BENCH_STORAGE: storage } });
  stops.push(() => endChild(child));
  child.stderr.pipe(process.stderr);
  for await (const port of createInterface({ input: child.stdout }))
    return { url: `http://127.0.0.1:${port}`, process: Number(child.pid), storage };
  throw new Error('The plain server has not started.');
}

/** True if no message is in the queue, visible or hidden. */
export async function isEmpty({ storage }: Measured, queue: string): Promise<boolean> {
  const properties = await QueueServiceClient.fromConnectionString(storage).getQueueClient(queue).getProperties();
  return properties.approximateMessagesCount === 0;
}
