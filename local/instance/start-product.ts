import { type EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { BACKUP_CONNECTION } from '../../lib/settings.ts';
import { rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { provision, type Resources } from '../../lib/storage/provision.ts';
import { BACKUP_CONTAINER } from '../../lib/storage/row-journal.ts';
import { BACKUP_ACCOUNT, openStorage } from '../../lib/storage/storage.ts';
import { allowOrigins } from './allow-origins.ts';
import { type Account, type Azurite, createEmulatorAccount, type EmulatorPorts, startAzurite } from './azurite.ts';
import { lockFolder } from './folder-lock.ts';
import {
  type FunctionsHost,
  type FunctionsHostOptions,
  requireFreePort,
  startFunctionsHost,
} from './functions-host.ts';
import { signToken, startIdentityProvider } from './identity-provider.ts';
import { type Instance, readInstance, removeInstance, writeInstance } from './instance.ts';
import { listMainFiles } from './load-local-app.ts';
import type { LocalApp } from './local-app.ts';
import { choosePort, isFree, type Ports, readPorts, writePorts } from './ports.ts';
import { makePrivate, readSecrets } from './secrets.ts';
import { BACKUP_NUMBER, keepAccountCount, storageOptions, storageSettings } from './storage-accounts.ts';

/** A functions host, whose `process` emits `exit` if it ends. */
type ProductHost = Omit<FunctionsHost, 'process'> & { readonly process: EventEmitter };

export interface ProductOptions {
  /** The app to run. */
  readonly app: LocalApp;
  /** The port of the API; 0 for any free port. Default: the port of the last start, or 7071. */
  readonly port?: number | undefined;
  readonly data: string;
  /** Origins of web pages that may use the API and storage; `*` for any. Default: none, as in Azure. */
  readonly cors?: readonly string[] | undefined;
  readonly func?: boolean | undefined;
  /** The number of storage accounts of the emulator. Default: that of the last start, or 1. */
  readonly accounts?: number | undefined;
  /** Storage to use instead of starting an emulator. */
  readonly storage?: {
    readonly connectionString: string;
    readonly further?: readonly string[];
    readonly backup?: string | undefined;
  };
  /** Starts the host. Default: as a child process. */
  readonly startHost?: ((options: FunctionsHostOptions) => Promise<ProductHost>) | undefined;
  /** Names of functions that only the admin route runs. Default: none. */
  readonly disabled?: readonly string[];
  readonly log?: (line: string) => void;
  /** Aborts the start and stops the parts that have started. */
  readonly signal?: AbortSignal;
}

/** What of an app may have changed while it runs. */
export interface ChangedApp {
  readonly prefix: string;
  /** The tables, queues and containers of its model. */
  readonly resources: Resources;
  readonly roles: readonly string[];
  readonly signedIn?: string | undefined;
}

export interface Product {
  readonly url: string;
  readonly instance: Instance;
  /** Resolves with the reason when a part ends unexpectedly. */
  readonly broken: Promise<string>;
  /** Creates what a changed app needs, and starts its host anew at the same address. Throws if it does not serve. */
  reload(changed: ChangedApp): Promise<void>;
  /** Sends SIGKILL to the host, to simulate a crash, and starts a new host at the same address. */
  killHost(): Promise<void>;
  /** Stops the host, which finishes the calls in progress, and then the parts that it depends on. */
  stop(): Promise<void>;
}

/** A start takes about two seconds, but far longer on a busy machine. */
const READY_WITHIN_MS = 120_000;
/** The usual ports of the functions host and of the storage emulator. */
const USUAL_PORTS = { api: 7071, blob: 10000, queue: 10001, table: 10002, identity: 7080 };
/** The identity provider of the instance accepts every client id. */
const CONSOLE_CLIENT_ID = 'console';
const PART_NAMES: Readonly<Record<keyof Ports, string>> = {
  api: 'API',
  blob: 'blob service',
  queue: 'queue service',
  table: 'table service',
  identity: 'identity provider',
};

/** Runs the whole product on this machine. If the start fails, stops every started part and throws one sentence. */
export async function startProduct(options: ProductOptions): Promise<Product> {
  const { app, data, cors = [], disabled = [], func, log = () => undefined, signal } = options;
  const { startHost: start = startFunctionsHost } = options;
  if ((await listMainFiles(app.folder)).length === 0)
    throw new Error('No file matches "main" of package.json: build the app first.');
  await makeWritable(data);
  const release = await lockData(data);
  const stops: (() => Promise<void>)[] = [];
  // Stops the parts once, in the reverse order of their starts.
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= (async () => {
      try {
        for (const each of stops.reverse()) await each();
      } finally {
        release();
      }
    })();
    return stopped;
  };
  const { promise: broken, resolve: breaks } = Promise.withResolvers<string>();

  try {
    if (options.port !== undefined) await requireFreePort(options.port);
    const remembered = await readPorts(data);
    // Any free port of the API is one of several instances on this machine, of which one can have the usual identity port.
    const usual = options.port === 0 ? { ...USUAL_PORTS, identity: 0 } : USUAL_PORTS;
    const wanted = { ...(remembered ?? usual), ...(options.port === undefined ? {} : { api: options.port }) };
    const isOlder = !options.storage && existsSync(join(data, 'azurite')) && !existsSync(join(data, 'secrets.json'));
    const { storageKey, hostKey } = await readSecrets(data);
    const choosePartPort = (part: keyof Ports) => choosePort(wanted[part], { isRemembered: remembered !== undefined });
    const accounts = options.storage ? 1 : await keepAccountCount(data, options.accounts);
    const names = Array.from({ length: accounts }, (_, number) => createEmulatorAccount(storageKey, number));
    // A model may declare a backup while the instance runs.
    const backupAccount = createEmulatorAccount(storageKey, BACKUP_NUMBER);
    const azurite = options.storage
      ? undefined
      : await startStorage(data, [...names, backupAccount], {
          blob: await choosePartPort('blob'),
          queue: await choosePartPort('queue'),
          table: await choosePartPort('table'),
        });
    if (azurite) {
      stops.push(azurite.stop);
      azurite.process.once('exit', (code) => stopped ?? breaks(`The storage emulator exited with code ${code}.`));
    }
    signal?.throwIfAborted();
    const connections = options.storage
      ? ([options.storage.connectionString, ...(options.storage.further ?? [])] as const)
      : ([
          azurite?.connectionString() ?? '',
          ...names.slice(1).map(({ name }) => azurite?.connectionString(name) ?? ''),
        ] as const);
    const backup = options.storage ? options.storage.backup : azurite?.connectionString(backupAccount.name);
    const provisionAccounts = async (prefix: string, resources: Resources) => {
      const isBackedUp = backup !== undefined && resources.containers.includes(BACKUP_CONTAINER);
      const to = isBackedUp ? { accounts: [{ connectionString: backup, name: BACKUP_ACCOUNT }] } : undefined;
      const opened = openStorage(storageOptions(connections), prefix);
      await provision({ ...opened, ...(to && { backup: openStorage(to, prefix) }) }, resources);
    };
    const storage = openStorage(storageOptions(connections), app.model.prefix);
    let signers: Pick<ChangedApp, 'roles' | 'signedIn'> = app.model;
    const startIdentity = (port: number) => startIdentityProvider({ folder: data, port, signers: () => signers });
    const [identity] = await Promise.all([
      choosePartPort('identity').then((port) =>
        startIdentity(port).catch(async (error) => {
          // Another program took the port since it was found free.
          if (port === 0 || (await isFree(port))) throw error;
          return startIdentity(0);
        }),
      ),
      provisionAccounts(app.model.prefix, resourcesOf(app.model.list, Date.now(), app.model)),
    ]);
    stops.push(identity.stop);
    const keyFile = join(data, 'keys.json');
    if (!existsSync(keyFile)) await rotateLocalKey(keyFile);
    signal?.throwIfAborted();
    const settings = {
      ROWKEY_HOST_KEY: hostKey,
      ...storageSettings(connections),
      ...(backup === undefined ? {} : { [BACKUP_CONNECTION]: backup }),
      KEY_ENCRYPTION_KEY_FILE: resolve(keyFile),
      TOKEN_ISSUER: identity.issuer,
      TOKEN_AUDIENCE: identity.audience,
      TOKEN_JWKS_URI: identity.jwksUri,
      CONSOLE_CLIENT_ID,
      ...Object.fromEntries(disabled.map((name) => [`AzureWebJobs.${name}.Disabled`, 'true'])),
    };
    // After another instance took their port, Core Tools run for up to half a minute, and that instance is healthy.
    const acceptsOwnToken = async (url: string) => {
      const { issuer, audience } = identity;
      const token = await signToken({ folder: data, issuer, audience, role: signers.roles });
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`${url}/api/operations/model`, { headers })).status !== 401;
    };
    const state = resolve(data, 'timers.json');
    let host: ProductHost | undefined;
    stops.push(async () => host?.stop());
    const startHost = async (port: number) => {
      const started = await start({ app: app.folder, port, settings, cors, state, func, log });
      host = started;
      const ended = once(started.process, 'exit').then(([code]) => `The functions host exited with code ${code}.`);
      const failed = Promise.race([ended, broken]).then((why) => Promise.reject(new Error(why)));
      const answering = await Promise.race([waitUntilHealthy(started, signal), failed]);
      if (started.isCoreTools && !(await acceptsOwnToken(answering))) {
        host = undefined;
        await started.kill();
        throw new Error(`Port ${parsePort(answering)} is in use by another instance: choose another with --port.`);
      }
      void ended.then((why) => {
        if (host === started && !stopped) breaks(why);
      });
      return answering;
    };
    const apiPort = options.port ?? (await choosePartPort('api'));
    const url = await startHost(apiPort).catch(async (error) => {
      // Another program took the port since it was found free.
      if (options.port !== undefined || apiPort === 0 || signal?.aborted || (await isFree(apiPort))) throw error;
      return startHost(0);
    });
    // The console also reads straight from storage, under both names of this machine.
    const consoleOrigins = [url, url.replace('127.0.0.1', 'localhost')];
    await allowOrigins(storage, cors.includes('*') ? cors : [...cors, ...consoleOrigins]);
    const killHost = async () => {
      const killed = host;
      host = undefined;
      await killed?.kill();
      await startHost(parsePort(url));
    };

    const reload = async ({ prefix, resources, roles, signedIn }: ChangedApp) => {
      const former = host;
      host = undefined;
      await former?.stop();
      await provisionAccounts(prefix, resources);
      signers = { roles, signedIn };
      await startHost(parsePort(url));
      await writeInstance(data, { ...instance, roles: [...roles] });
    };

    const { tables, queues, blobs } = storage;
    const { issuer, audience, jwksUri } = identity;
    const services = { tables: tables.url, queues: queues.url, blobs: blobs.url };
    const { folder, model } = app;
    const served = { app: resolve(folder), roles: [...model.roles], pid: process.pid, accounts: connections.length };
    const instance = { url, issuer, audience, jwksUri, ...services, ...served };
    const ports = {
      api: parsePort(url),
      identity: parsePort(issuer),
      ...(azurite
        ? {
            blob: parsePort(azurite.endpoints.blob),
            queue: parsePort(azurite.endpoints.queue),
            table: parsePort(azurite.endpoints.table),
          }
        : { blob: wanted.blob, queue: wanted.queue, table: wanted.table }),
    };
    for (const part of Object.keys(PART_NAMES) as (keyof Ports)[])
      if (wanted[part] && wanted[part] !== ports[part])
        log(`Another program uses port ${wanted[part]}: the ${PART_NAMES[part]} now listens on ${ports[part]}.`);
    if (isOlder)
      log(
        `An earlier version made the folder ${data}: its data is kept, but its storage account has a new key, so earlier connection strings, tokens and grants are no longer valid.`,
      );
    await writePorts(data, ports);
    await writeInstance(data, instance);
    stops.push(() => removeInstance(data));
    return { url, instance, broken, reload, killHost, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function lockData(data: string): Promise<() => void> {
  const release = lockFolder(data);
  if (release) {
    // A killed instance leaves this file behind, and its process id may already belong to another process.
    await removeInstance(data);
    return release;
  }
  const running = await readInstance(data);
  throw new Error(
    `An instance runs on ${data} already, ${running ? `at ${running.url}` : 'and is starting or ending'}.`,
  );
}

async function startStorage(data: string, [first, ...further]: Account[], ports: EmulatorPorts): Promise<Azurite> {
  const folder = join(data, 'azurite');
  await makePrivate(folder);
  if (!first) throw new Error('The storage emulator needs an account.');
  const options = { folder, accounts: [first, ...further] } as const;
  return startAzurite({ ...options, ports }).catch((error) => {
    // Another program took a port since it was found free, and may have left it again.
    if (!String(error).includes('EADDRINUSE')) throw error;
    return startAzurite(options);
  });
}

function parsePort(url: string): number {
  return Number(new URL(url).port);
}

async function makeWritable(folder: string): Promise<void> {
  try {
    await makePrivate(folder);
    await access(folder, constants.W_OK);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw new Error(`The folder ${folder} cannot be written to (${code}): choose another folder with --data.`);
  }
}

/** Polls the health route and returns the URL once the host serves. */
async function waitUntilHealthy(host: ProductHost, signal: AbortSignal | undefined): Promise<string> {
  const until = Date.now() + READY_WITHIN_MS;
  while (Date.now() < until) {
    signal?.throwIfAborted();
    const { url } = host;
    const response = url ? await fetch(`${url}/api/health`).catch(() => undefined) : undefined;
    if (url && response?.ok) return url;
    const refused = response && (await readRefused(response));
    if (refused === 'declaration')
      throw new Error(
        'The stored data does not allow the model: the reason is in the log above. To begin without the stored data, start with another folder by --data.',
      );
    if (refused) throw new Error('The functions host serves nothing: the reason is in its log above.');
    await sleep(50);
  }
  throw new Error(`The functions host was not ready within ${READY_WITHIN_MS / 1000} s.`);
}

/** What an app refuses until it is changed: `settings`, or `declaration`, its model. Waiting is then pointless. */
async function readRefused(health: Response): Promise<string | undefined> {
  const body: unknown = await health.json().catch(() => undefined);
  if (typeof body !== 'object' || body === null) return undefined;
  return Object.entries(body).find(([, state]) => state === 'refused')?.[0];
}
