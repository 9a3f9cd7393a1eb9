import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Model } from '../../lib/index.ts';
import { startAzurite } from '../../local/instance/azurite.ts';
import { type FunctionsHost, startFunctionsHost } from '../../local/instance/functions-host.ts';
import { signToken, startIdentityProvider } from '../../local/instance/identity-provider.ts';
import { model } from '../fixtures/model.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageKeys, storageTables } from '../kit/storage.ts';
import { send } from './http.ts';

/** Milliseconds. */
export interface FirstRequest {
  /** From the start of the process to the first response. */
  readonly answered: number;
  /** Of the first request alone. */
  readonly first: number;
  /** Of the same request again. */
  readonly second: number;
}

interface FirstRequests {
  /** The first GET by key of a new process: a token and the model are checked, and an encrypted field is decrypted. */
  product(): Promise<FirstRequest>;
  /** The same request after the process has had time to do what it begins when it starts. */
  productAfterPause(): Promise<FirstRequest>;
  /** The first request of an app with one function. */
  hello(): Promise<FirstRequest>;
  stop(): Promise<void>;
}

const PAUSE_MS = 1_000;
const EMPLOYEE = { department: 'Sales', employeeId: '000123', email: 'ann@contoso.com', firstName: 'Ann' };
const BODY = { ...EMPLOYEE, lastName: 'Lee', jobTitle: 'Clerk', hireDate: '2020-01-02', nationalId: 'n' };

/** Returns the address of a host when it listens. Throws what the host logged if it ends before. */
export async function waitForUrl(host: FunctionsHost, logged: readonly string[]): Promise<string> {
  let hasEnded = false;
  // Not its exit, after which lines of the log may follow.
  host.process.once('close', () => {
    hasEnded = true;
  });
  while (host.url === undefined) {
    if (hasEnded) throw new Error(`The host ended before it listened.\n${logged.join('\n')}`);
    await sleep(1);
  }
  return host.url;
}

/** What a host needs: storage with the resources of a model, an issuer of tokens and a key. */
export async function startSurroundings(model: Model) {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-first-'));
  const azurite = await startAzurite({
    folder: undefined,
    accounts: [{ name: 'first', key: randomBytes(64).toString('base64') }],
  });
  const identity = await startIdentityProvider({ folder });
  const keyFile = join(folder, 'keys.json');
  await storageKeys.rotateLocalKey(keyFile);
  const connectionString = azurite.connectionString();
  await storageTables.provision(
    storageAccounts.openStorage({ connectionString }),
    operationsModel.resourcesOf(model.list, Date.now()),
  );
  const { issuer, audience, jwksUri } = identity;
  return {
    token: await signToken({ folder, issuer, audience, role: 'hr' }),
    settings: {
      AzureWebJobsStorage: connectionString,
      KEY_ENCRYPTION_KEY_FILE: keyFile,
      TOKEN_ISSUER: issuer,
      TOKEN_AUDIENCE: audience,
      TOKEN_JWKS_URI: jwksUri,
    },
    async stop() {
      await identity.stop();
      await azurite.stop();
      await rm(folder, { recursive: true });
    },
  };
}

/** Starts what the hosts need. The apps are of the fixtures' model, and with one function, in these folders. */
export async function prepareFirstRequests(apps: {
  readonly product: string;
  readonly hello: string;
}): Promise<FirstRequests> {
  const { token, settings, stop } = await startSurroundings(model);

  interface Measured {
    readonly path: string;
    readonly body?: object;
    readonly pauseMs?: number;
  }
  async function measure(app: string, { path, body, pauseMs = 0 }: Measured): Promise<FirstRequest> {
    const since = performance.now();
    const logged: string[] = [];
    const host = await startFunctionsHost({ app, port: 0, settings, func: false, log: (line) => logged.push(line) });
    try {
      const server = { url: await waitForUrl(host, logged), token };
      await sleep(pauseMs);
      const sent = performance.now();
      await send(server, body ? { method: 'POST', path, body } : { method: 'GET', path });
      const answered = performance.now();
      if (!body) await send(server, { method: 'GET', path });
      return { answered: answered - since, first: answered - sent, second: performance.now() - answered };
    } finally {
      await host.stop();
    }
  }

  await writeFile(join(apps.hello, 'host.json'), '{"version":"2.0","extensions":{"http":{"routePrefix":""}}}');
  // Also stores the state of the model, as a deployed app has.
  await measure(apps.product, { path: '/api/employees', body: BODY });
  const path = `/api/employees/${EMPLOYEE.department}/${EMPLOYEE.employeeId}`;
  return {
    product: () => measure(apps.product, { path }),
    productAfterPause: () => measure(apps.product, { path, pauseMs: PAUSE_MS }),
    hello: () => measure(apps.hello, { path: '/hello' }),
    stop,
  };
}
