import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { HttpClient } from '@azure/core-rest-pipeline';
import type { HttpMethod } from '@azure/functions';
import { inject } from 'vitest';
import type { Authenticate, Caller, Implementations, Model } from '../lib/index.ts';
import { receivePath, type TestHost } from './hosted-path.ts';
import { apiCalls } from './kit/api.ts';
import type { LinkedModel } from './kit/define.ts';
import { type Engine, engineCore } from './kit/engine.ts';
import { httpDoor } from './kit/http.ts';
import { operationsCheck, operationsModel } from './kit/operations.ts';
import { type Storage, storageAccounts, storageKeys, storageTables } from './kit/storage.ts';
import { testApp, testInvocation, testRequest } from './lib/http/request.ts';
import { testStorage } from './storage.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  readonly body: any;
  /** The lines of the log of the request. */
  readonly logged: readonly string[];
}

/** Sends a request of this caller. A body that is not binary is sent as JSON. */
export type Ask = (
  caller: Partial<Caller>,
  method: HttpMethod,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Reply>;

/** The routes of any model in this process, on the test file's own storage. A test decides who the caller is; nothing else is replaced. */
export async function openAccessApp<Of extends LinkedModel>(
  url: string,
  model: Of,
  {
    operations,
    httpClient,
    storage: given,
    host = 'local',
    authenticate,
    trustedProxies = 0,
    ...options
  }: Partial<Pick<Engine, 'now' | 'settleInline'>> & {
    /** Which host passes the paths on. */
    host?: TestHost;
    /** Of its calls of storage. */
    httpClient?: HttpClient;
    /** Instead of the storage of the test file. */
    storage?: Storage;
    operations?: Of extends Model ? Implementations<Of> : never;
    /** Finds the caller by the header `authorization` that a test sends, instead of the caller of the test. */
    authenticate?: Authenticate;
    trustedProxies?: number;
  } = {},
) {
  const account = { connectionString: testStorage(url), ...(httpClient ? { httpClient } : {}) };
  const storage = given ?? storageAccounts.openStorage(account, model.prefix);
  const keyFile = join(inject('folder'), `${randomUUID()}.json`);
  await storageKeys.rotateLocalKey(keyFile);
  const keys = storageKeys.createLocalKeyRing(keyFile);
  await storageTables.provision(storage, operationsModel.resourcesOf(model.list, Date.now()));
  const engine = engineCore.createEngine(storage, { ...options, keys, rulesMaxAge: model.rulesMaxAge });
  let caller: Caller = { subject: '', roles: [], claims: {} };
  const signer = storageKeys.tableSasSigner(storage);
  const audit = operationsCheck.createAuditLog(engine);
  const record = <Result>(by: string, write: () => Promise<Result>) =>
    engineCore.collectChanges(by, write, (changes) => audit.append(changes));
  const over = {
    engine,
    audit,
    entities: model.list,
    operatorRole: model.operatorRole,
    limits: model.limits,
    execute: apiCalls.createExecute(model, operations, { limits: model.limits, record }),
    signer: () => signer,
    authenticate: authenticate ?? (async () => caller),
    trustedProxies,
  };
  const app = testApp(url, over);
  const handle = httpDoor.createApiHandler(() => app, httpDoor.createRoutes(model));
  const ask: Ask = async ({ subject = 'ann', roles = [], claims = {} }, method, path, body, more = {}) => {
    caller = { subject, roles, claims };
    const received = receivePath(host, path, more);
    const isBinary = body instanceof Uint8Array;
    const request = testRequest({
      method,
      path,
      params: { path: received.path },
      headers: {
        'content-type': isBinary ? 'image/png' : 'application/json',
        ...(authenticate ? {} : { authorization: 'Bearer x' }),
        ...received.headers,
      },
      ...(body === undefined ? {} : { body: isBinary ? body : JSON.stringify(body) }),
    });
    const { invocation, logged } = testInvocation();
    const { status = 200, headers, body: sent } = await handle(request, invocation);
    const text = await new Response(sent as ConstructorParameters<typeof Response>[0]).text();
    const sentHeaders = new Headers(headers as ConstructorParameters<typeof Headers>[0]);
    const isJson = /json/.test(sentHeaders.get('content-type') ?? '');
    return { status, headers: sentHeaders, text, body: isJson && text !== '' ? JSON.parse(text) : undefined, logged };
  };
  return { ask, engine, storage };
}
