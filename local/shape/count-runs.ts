import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { type Profiler, Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type HttpHandler, HttpRequest, InvocationContext, type PreInvocationHandler } from '@azure/functions';
import type { IdentityProvider } from '../../lib/access/token.ts';
import { type FunctionsApp, registerFunctions } from '../../lib/register-functions.ts';
import { createRowkey } from '../../lib/rowkey.ts';
import { rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { startAzurite } from '../instance/azurite.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { signToken, startIdentityProvider } from '../instance/identity-provider.ts';
import { readSamples } from '../packs/samples.ts';
import { isOfLibrary } from './source-files.ts';

/** What one request ran of lib. */
export interface Run {
  readonly files: number;
  readonly functions: number;
  readonly calls: number;
  /** The calls of all functions of this name. */
  callsOf(name: string): number;
}

/** An entity of the example packs with indexes of each kind, copies, an encrypted field and a file. */
const SAMPLE = 'employees';
const ROLE = 'hr';
/** What a process does once for its first requests is not counted. */
const WARM_UPS = 2;
const ROOT = new URL('../../', import.meta.url).href;

/**
 * Creates and reads sample entities through the handler of the app, in this process and against Azurite. Returns what the last create and
 * the last GET by key ran.
 */
export async function countRuns(): Promise<{ create: Run; get: Run }> {
  const samples = (await readSamples(Date.now())).flat().filter(({ path }) => path === SAMPLE);
  if (samples.length <= WARM_UPS) throw new Error(`The model needs ${WARM_UPS + 1} samples of ${SAMPLE}.`);
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-shape-'));
  const azurite = await startAzurite({
    folder: undefined,
    accounts: [{ name: 'shape', key: randomBytes(64).toString('base64') }],
  });
  const identity = await startIdentityProvider({ folder });
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    const takeRun = async () => toRun((await session.post('Profiler.takePreciseCoverage')).result);
    const send = await openApp({ folder, connectionString: azurite.connectionString(), identity });
    for (const { body } of samples.slice(0, WARM_UPS)) await send('GET', await send('POST', SAMPLE, body));
    await takeRun();
    const location = await send('POST', SAMPLE, samples[WARM_UPS]?.body);
    const create = await takeRun();
    await send('GET', location);
    return { create, get: await takeRun() };
  } finally {
    session.disconnect();
    await Promise.all([azurite.stop(), identity.stop()]);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Registers the app as a host does, and returns a client that resolves to the path of the created entity, below `/api/`. */
async function openApp({
  folder,
  connectionString,
  identity,
}: {
  readonly folder: string;
  readonly connectionString: string;
  readonly identity: IdentityProvider;
}) {
  const { issuer, audience } = identity;
  const keyFile = join(folder, 'keys.json');
  await rotateLocalKey(keyFile);
  const rowkey = createRowkey({
    model: deployedApp.model,
    storage: { connectionString },
    auth: identity,
    keys: { file: keyFile },
  });
  await rowkey.provision();
  const handlers: HttpHandler[] = [];
  const hooks: PreInvocationHandler[] = [];
  const ignore = () => undefined;
  registerFunctions(
    {
      http: (_name: string, { handler }: { handler: HttpHandler }) => void handlers.push(handler),
      storageQueue: ignore,
      timer: ignore,
      hook: {
        appStart: ignore,
        preInvocation: (hook: PreInvocationHandler) => void hooks.push(hook),
        appTerminate: ignore,
      },
    } as unknown as FunctionsApp,
    rowkey,
  );
  const token = await signToken({ folder, issuer, audience, role: ROLE });
  return async (method: 'GET' | 'POST', path: string, body?: object): Promise<string> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const url = `http://localhost/api/${path}`;
    const sent = body ? { body: { string: JSON.stringify(body) } } : {};
    const request = new HttpRequest({ method, url, params: { path }, headers, ...sent });
    const options = { trigger: { type: 'httpTrigger', name: 'request', route: '{*path}' } };
    const context = new InvocationContext({ functionName: 'api', options, logHandler: ignore } as never);
    const invocation = { functionHandler: handlers[0], invocationContext: context, inputs: [request] };
    for (const hook of hooks) await hook(invocation as never);
    const response = await (invocation.functionHandler as HttpHandler)(request, context);
    const { status, headers: received, body: text } = response as Response;
    if (status >= 400) throw new Error(`${method} ${path} returned ${status}: ${await new Response(text).text()}`);
    return new Headers(received).get('location')?.replace('/api/', '') ?? path;
  };
}

function toRun(scripts: readonly Profiler.ScriptCoverage[]): Run {
  const files = scripts
    .filter(({ url }) => url.startsWith(ROOT) && isOfLibrary(url.slice(ROOT.length)))
    .map(({ functions }) =>
      functions
        // Without the module itself, which is a function from the beginning of the file.
        .map(({ functionName, ranges: [range] }) => ({
          functionName,
          count: range?.startOffset === 0 ? 0 : (range?.count ?? 0),
        }))
        .filter(({ count }) => count > 0),
    )
    .filter(({ length }) => length > 0);
  const functions = files.flat();
  const sum = (list: typeof functions) => list.reduce((total, { count }) => total + count, 0);
  return {
    files: files.length,
    functions: functions.length,
    calls: sum(functions),
    callsOf: (name) => sum(functions.filter(({ functionName }) => functionName === name)),
  };
}
