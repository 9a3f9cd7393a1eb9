import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Values } from '../lib/index.ts';
import { type FunctionsHost, startFunctionsHost } from '../local/instance/functions-host.ts';
import { signToken, startIdentityProvider } from '../local/instance/identity-provider.ts';
import { isQueued, showMessages } from '../local/walk/known-messages.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { deployedApp as testApp } from './fixtures/deployed-app.ts';
import { employees } from './fixtures/model.ts';
import { definePlaces } from './kit/define.ts';
import { storageKeys, storageRows } from './kit/storage.ts';
import { PATIENCE_MS } from './patience.ts';
import { samplePoints } from './points.ts';
import { testStorage } from './storage.ts';
import { openWorld, somebody, type World } from './world.ts';

/**
 * Runs the compiled app under a host that is killed between any two storage calls of a request and of its follow-up
 * work.
 */

interface Operation {
  /** Creates the prerequisites without faults, and settles them. */
  readonly prepare?: (world: World, one: Values) => Promise<unknown>;
  readonly act: (call: Call, one: Values) => Promise<Response>;
  /** The test fails if the operation makes only this many storage calls: the proxy would miss some. */
  readonly moreCallsThan: number;
  /**
   * Settles the queues after so many kills. A host handles the messages of earlier visits too, and a message that ends its process
   * at every attempt is poison.
   */
  readonly settleAfter?: number;
}

type Call = (method: string, path: string, body?: object | Uint8Array<ArrayBuffer>) => Promise<Response>;

export interface Visited {
  readonly one: Values;
  /** The status that the caller received, or 0 if the host died first. */
  readonly status: number;
}

export interface KilledHost {
  readonly world: World;
  /** Repeats an operation once for each kill point, with a new entity each time. */
  visit(operation: Operation): Promise<Visited[]>;
  /** Runs a host until the queues are empty. Hidden messages become visible before the host starts. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * How long a killed host holds a message, instead of ten minutes. A slow machine must be able to finish its work in
 * this time.
 */
const HOLD_SECONDS = 15;
/**
 * An operation has ended after this long without a call: the host polls its queues every second, and less often on a slow
 * machine.
 */
const QUIET_MS = 5_000;
/** As above, without a message about the work in a queue. */
const DONE_MS = 1_000;
const POLL_MS = 25;
const QUEUES = ['index-changes', 'transfers'];
/** A message that has to wait for the claim of a dead writer waits for a minute. */
const SETTLE_WITHIN_MS = 240_000;

export async function openKilledHost(url: string): Promise<KilledHost> {
  const world = await openWorld(url);
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-killed-'));
  const proxy = await startFaultProxy(testStorage(url));
  const identity = await startIdentityProvider({ folder, port: 0 });
  const keyFile = join(folder, 'keys.json');
  await storageKeys.rotateLocalKey(keyFile);
  const { issuer, audience, jwksUri } = identity;
  const token = await signToken({ folder, issuer, audience, role: 'hr' });
  const settings = {
    AzureWebJobsStorage: proxy.connectionString,
    KEY_ENCRYPTION_KEY_FILE: keyFile,
    TOKEN_ISSUER: issuer,
    TOKEN_AUDIENCE: audience,
    TOKEN_JWKS_URI: jwksUri,
    ROWKEY_HOLD_SECONDS: String(HOLD_SECONDS),
  };
  let host: FunctionsHost | undefined;

  async function start(): Promise<FunctionsHost> {
    const started = await startFunctionsHost({
      app: testApp.folder,
      port: 0,
      settings,
      func: false,
      log: () => undefined,
    });
    const until = Date.now() + PATIENCE_MS;
    // The first request with a token loads the model and the keys.
    const answer = () => fetch(`${started.url}/api/departments/none`, withToken('GET')).catch(() => undefined);
    while (!(started.url && (await answer()))) {
      if (Date.now() > until) throw new Error('The host does not start.');
      await sleep(50);
    }
    return started;
  }

  function withToken(method: string, body?: object | Uint8Array<ArrayBuffer>): RequestInit {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) };
    return { method, headers, ...sent };
  }

  const isLive = () => host !== undefined && host.process.exitCode === null && host.process.signalCode === null;

  /** Runs an operation with a host that dies at the `at`-th call, or counts the calls if `at` is missing. */
  async function run({ prepare, act }: Operation, at?: number): Promise<Visited & { calls: number }> {
    if (!isLive()) host = await start();
    const living = host;
    if (!living) throw new Error('The host does not start.');
    const one = newcomer();
    if (prepare) {
      await prepare(world, one);
      // The host does the follow-up work.
      await settled(one);
    }
    proxy.watch(String(one.employeeId), at, () => living.process.kill('SIGKILL'));
    const call: Call = (method, path, body) => fetch(`${living.url}/api/${path}`, withToken(method, body));
    const status = await act(call, one).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
    const isOpen = () => QUEUES.some((queue) => isQueued(world.storage.queue(queue), String(one.employeeId)));
    while (isLive() && proxy.quietFor < (isOpen() ? QUIET_MS : DONE_MS)) await sleep(POLL_MS);
    if (!isLive() && living.process.exitCode === null && living.process.signalCode === null)
      await once(living.process, 'exit');
    const { calls } = proxy;
    proxy.watch('nothing');
    return { one, status, calls };
  }

  /** Waits until the company-wide email is confirmed, which is the last step of a create. */
  async function settled(one: Values): Promise<void> {
    const indexEntry = definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
    const until = Date.now() + PATIENCE_MS;
    for (let isDone = false; !isDone && Date.now() < until; await sleep(POLL_MS * 10)) {
      const row = indexEntry && (await storageRows.readRow(world.storage, indexEntry));
      isDone = row?.properties.Confirmed === true && !row.properties.Claim;
    }
  }

  async function settle(): Promise<void> {
    // Only a dead host has lost its hold on the messages.
    if (isLive()) host?.process.kill('SIGKILL');
    while (isLive() || !proxy.isIdle) await sleep(POLL_MS);
    await Promise.all(QUEUES.map((queue) => showMessages(world.storage.queue(queue))));
    host = await start();
    const until = Date.now() + SETTLE_WITHIN_MS;
    for (let left = 1; left > 0; await sleep(250)) {
      if (Date.now() > until) throw new Error('The queues do not become empty.');
      left = 0;
      for (const queue of QUEUES)
        left += (await world.storage.queue(queue).getProperties()).approximateMessagesCount ?? 0;
    }
  }

  return {
    world,
    async visit(operation) {
      const { calls } = await run(operation);
      expect(calls).toBeGreaterThan(operation.moreCallsThan);
      const visited: Visited[] = [];
      for (const at of samplePoints(calls)) {
        visited.push(await run(operation, at));
        if (visited.length % (operation.settleAfter ?? Number.POSITIVE_INFINITY) === 0) await settle();
      }
      return visited;
    },
    settle,
    async stop() {
      await host?.stop();
      await identity.stop();
      await proxy.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Returns an employee whose keys all contain the employee number, so that the proxy recognizes related calls. */
function newcomer(): Values {
  const { employeeId, ...one } = somebody();
  const id = `9${employeeId.slice(1)}`;
  return { ...one, employeeId: id, department: `Of${id}`, lastName: `Last${id}`, email: `${id}@contoso.com` };
}
