import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { KEY_FILE, signToken } from '../local/instance/identity-provider.ts';
import type { LocalApp } from '../local/instance/local-app.ts';
import { readSecrets } from '../local/instance/secrets.ts';
import { startProduct } from '../local/instance/start-product.ts';
import { storageOptions } from '../local/instance/storage-accounts.ts';
import { runInProcess } from './command-in-process.ts';
import { deployedApp } from './fixtures/deployed-app.ts';
import { IS_HOSTED_IN_PROCESS, startHostInProcess } from './host-in-process.ts';
import { appFunctions } from './kit/api.ts';
import { httpDoor } from './kit/http.ts';
import { type Storage, storageAccounts, storageTables } from './kit/storage.ts';
import { type OpenApi, type OpenApiChecker, openapiChecker } from './openapi.ts';
import { PATIENCE_MS } from './patience.ts';
import { ROOT, runCommand } from './start-process.ts';
import { testStorage } from './storage.ts';
import { UNDER_FUNC } from './under-func.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined or empty without a body. */
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what it asked for
  readonly body: any;
}

export type Client = (
  method: string,
  path: string,
  options?: { body?: unknown; headers?: Record<string, string> },
) => Promise<Reply>;

/** Names of the timer functions that run hourly or daily. */
const timersOf = ({ model }: LocalApp) =>
  appFunctions
    .timersOf(model)
    .filter(([, { schedule }]) => !schedule.startsWith('0 * '))
    .map(([name]) => storageTables.prefixWithHyphen(model.prefix, name));

/** Kept for all test files of a process, each of which has its own modules: a description and its checker take most of a second. */
const kept = globalThis as { openApiCheckers?: Map<string, Promise<OpenApiChecker>> };
kept.openApiCheckers ??= new Map();
const checkers = kept.openApiCheckers;

export interface Product {
  readonly url: string;
  /** The data folder of the instance. */
  readonly folder: string;
  readonly storage: Storage;
  /** The file of the key-encryption keys. */
  readonly keyFile: string;
  /** The log of the host so far. */
  readonly logged: readonly string[];
  /** Runs a timer function through the admin route and returns the status. */
  runTimer(name: string): Promise<number>;
  token(role: string | readonly string[], email?: string): Promise<string>;
  /** Runs a command of `local/` on the instance, in the process of the test if its host is there, and waits for its end. */
  run(script: string, ...words: readonly string[]): ReturnType<typeof runCommand>;
  /** A client with a token of this role. Every response must match the OpenAPI description. */
  as(role: string | readonly string[] | undefined, email?: string): Client;
}

/** An app under the functions host, the fixtures' app by default, on the test file's own storage; for the whole file. */
export function useProduct(
  url: string,
  {
    app = deployedApp,
    cors,
    further = [],
    backup,
    hasTelemetry = false,
    through = async (connectionString) => connectionString,
  }: {
    readonly app?: LocalApp;
    readonly cors?: readonly string[];
    /** In place of files: further storage accounts of the app. */
    readonly further?: readonly string[];
    /** In place of a file: the account of the app's backup. */
    readonly backup?: string;
    /** True if the app sends or prints telemetry, which is global: its host is then always a process of its own. */
    readonly hasTelemetry?: boolean;
    /** Starts a proxy of the storage for the host alone, and returns its connection string. */
    readonly through?: (connectionString: string) => Promise<string>;
  } = {},
): Product {
  const connectionString = testStorage(url);
  let product: Awaited<ReturnType<typeof startProduct>>;
  let folder: string;
  const logged: string[] = [];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rowkey-product-'));
    await copyFile(join(inject('folder'), KEY_FILE), join(folder, KEY_FILE));
    product = await startProduct({
      app,
      port: 0,
      data: folder,
      cors,
      // At its minute, a timer would repair what a test has just damaged. Tests run it themselves, by `runTimer`.
      disabled: timersOf(app),
      storage: {
        connectionString: await through(connectionString),
        further: further.map(testStorage),
        backup: backup && testStorage(backup),
      },
      log: (line) => logged.push(line),
      func: UNDER_FUNC,
      startHost: IS_HOSTED_IN_PROCESS && !hasTelemetry ? startHostInProcess : undefined,
    });
  });
  afterAll(async () => {
    await product?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const checker = () => {
    const build = `${inject('build')} ${app.folder}`;
    const found = checkers.get(build);
    if (found) return found;
    const made = fetch(new URL('/api/openapi.json', product.url)).then(async (response) =>
      openapiChecker((await response.json()) as OpenApi, httpDoor.createRoutes(app.model)),
    );
    checkers.set(build, made);
    made.catch(() => checkers.delete(build));
    return made;
  };
  const token = (role: string | readonly string[], email?: string) => {
    const { issuer, audience } = product.instance;
    return signToken({ folder, issuer, audience, role, ...(email ? { email } : {}) });
  };
  return {
    get url() {
      return product.url;
    },
    get folder() {
      return folder;
    },
    get keyFile() {
      return join(folder, 'keys.json');
    },
    storage: storageAccounts.openStorage(
      storageOptions([connectionString, ...further.map(testStorage)]),
      app.model.prefix,
    ),
    logged,
    async runTimer(name) {
      const headers = { 'content-type': 'application/json', 'x-functions-key': (await readSecrets(folder)).hostKey };
      const url = new URL(`/admin/functions/${name}`, product.url);
      return (await fetch(url, { method: 'POST', headers, body: '{}' })).status;
    },
    token,
    run(script, ...words) {
      const all = [...words, '--data', folder];
      const inProcess = IS_HOSTED_IN_PROCESS ? runInProcess(script, all, app) : undefined;
      return inProcess ?? runCommand(script, all, { deployed: app.folder === ROOT });
    },
    as:
      (role, email) =>
      async (method, path, { body, headers = {} } = {}) => {
        const authorization: Record<string, string> = role
          ? { authorization: `Bearer ${await token(role, email)}` }
          : {};
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        const response = await fetch(new URL(path, product.url), {
          method,
          headers: {
            ...authorization,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(body === undefined ? {} : { body: text }),
        });
        const answer = await response.text();
        const { status, headers: received } = response;
        const exchange = { method, path, status, headers: received, text: answer };
        expect((await checker()).disagreement(exchange), 'the OpenAPI description').toBeUndefined();
        return { status, headers: received, body: answer && JSON.parse(answer) };
      },
  };
}

/** Repeats a request until the reply matches; fails with the last reply. */
export async function eventually(ask: () => Promise<Reply>, wanted: (reply: Reply) => boolean): Promise<Reply> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const reply = await ask();
    if (wanted(reply)) return reply;
    if (Date.now() > until) throw new Error(`Still not so: ${reply.status} ${JSON.stringify(reply.body)}`);
    await sleep(50);
  }
}
