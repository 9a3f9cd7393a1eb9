import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { provision } from '../../lib/storage/provision.ts';
import { openStorage } from '../../lib/storage/storage.ts';
import { startAzurite } from '../../local/instance/azurite.ts';
import { startFunctionsHost } from '../../local/instance/functions-host.ts';
import { signToken, startIdentityProvider } from '../../local/instance/identity-provider.ts';
import { model } from '../fixtures/model.ts';
import { send } from './http.ts';

/** Milliseconds. */
export interface FirstRequest {
  /** From the start of the process to the first response. */
  readonly answered: number;
  /** Of the first request alone: the host listens. */
  readonly first: number;
  /** Of the same request again. */
  readonly second: number;
}

export interface FirstRequests {
  /** The first GET by key of a new process: a token and the model are checked, and an encrypted field is decrypted. */
  product(): Promise<FirstRequest>;
  /** The first request of an app with one function. */
  hello(): Promise<FirstRequest>;
  stop(): Promise<void>;
}

const EMPLOYEE = { department: 'Sales', employeeId: '000123', email: 'ann@contoso.com', firstName: 'Ann' };
const BODY = { ...EMPLOYEE, lastName: 'Lee', jobTitle: 'Clerk', hireDate: '2020-01-02', nationalId: 'n' };

/** Starts the storage that the hosts use. The apps are of the fixtures' model, and with one function, in these folders. */
export async function prepareFirstRequests(apps: {
  readonly product: string;
  readonly hello: string;
}): Promise<FirstRequests> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-first-'));
  const azurite = await startAzurite({
    folder: undefined,
    accounts: [{ name: 'first', key: randomBytes(64).toString('base64') }],
  });
  const identity = await startIdentityProvider({ folder });
  const keyFile = join(folder, 'keys.json');
  await rotateLocalKey(keyFile);
  const connectionString = azurite.connectionString();
  await provision(openStorage({ connectionString }), resourcesOf(model.list, Date.now()));
  const { issuer, audience, jwksUri } = identity;
  const token = await signToken({ folder, issuer, audience, role: 'hr' });
  const settings = {
    AzureWebJobsStorage: connectionString,
    KEY_ENCRYPTION_KEY_FILE: keyFile,
    TOKEN_ISSUER: issuer,
    TOKEN_AUDIENCE: audience,
    TOKEN_JWKS_URI: jwksUri,
  };

  async function measure(app: string, path: string, body?: object): Promise<FirstRequest> {
    const since = performance.now();
    const host = await startFunctionsHost({ app, port: 0, settings, func: false, log: () => undefined });
    try {
      while (host.url === undefined) await sleep(1);
      const server = { url: host.url, token };
      const listening = performance.now();
      await send(server, body ? { method: 'POST', path, body } : { method: 'GET', path });
      const answered = performance.now();
      if (!body) await send(server, { method: 'GET', path });
      return { answered: answered - since, first: answered - listening, second: performance.now() - answered };
    } finally {
      await host.stop();
    }
  }

  await writeFile(join(apps.hello, 'host.json'), '{"version":"2.0","extensions":{"http":{"routePrefix":""}}}');
  // Also stores the state of the model, as a deployed app has.
  await measure(apps.product, '/api/employees', BODY);
  return {
    product: () => measure(apps.product, `/api/employees/${EMPLOYEE.department}/${EMPLOYEE.employeeId}`),
    hello: () => measure(apps.hello, '/hello'),
    async stop() {
      await identity.stop();
      await azurite.stop();
      await rm(folder, { recursive: true });
    },
  };
}
