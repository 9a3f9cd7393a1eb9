import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { moduleFile } from './module-file.ts';
import { type Child, endChild, interruptChild, killGroup, spawnChild, spawnScript } from './spawn-child.ts';

/** The functions host as a child process: Core Tools if they are installed, else local/host. */
export interface FunctionsHost {
  readonly process: Child;
  /** True if the host does not report that it listens. Then another process may return responses on its port. */
  readonly isCoreTools: boolean;
  /** Undefined until it listens. */
  readonly url: string | undefined;
  /** Waits until the calls in progress have finished. */
  stop(): Promise<void>;
  /** Ends the host with SIGKILL, to simulate a crash. */
  kill(): Promise<void>;
}

export interface FunctionsHostOptions {
  /** The folder of the app. */
  readonly app: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
  /** Origins of web pages that may call the API; `*` for any. */
  readonly cors?: readonly string[] | undefined;
  /**
   * The file in which the local host keeps the last run of each timer, to make up for missed runs. The real host uses
   * storage.
   */
  readonly state?: string | undefined;
  /** True requires Core Tools, false forbids them. By default they are used if installed. */
  readonly func?: boolean | undefined;
  /** Receives each line that the host logs. */
  readonly log: (line: string) => void;
}

/**
 * Core Tools ignore SIGTERM (https://github.com/Azure/azure-functions-core-tools/issues/3074), and may not end after SIGINT
 * (https://github.com/Azure/azure-functions-core-tools/issues/4355).
 */
const CORE_TOOLS_STOP_WITHIN_MS = 15_000;
const OWN_HOST = fileURLToPath(moduleFile('../host/main', import.meta.url));

/** Starts the host and returns before it serves: poll `/api/health`. */
export async function startFunctionsHost(options: FunctionsHostOptions): Promise<FunctionsHost> {
  const { app, port, settings, cors = [], state, func, log } = options;
  const version = func === false ? undefined : findCoreTools();
  const isCoreTools = version !== undefined;
  if (func && !isCoreTools)
    throw new Error('Cannot use --func: Azure Functions Core Tools are not installed (no func on the PATH).');
  if (isCoreTools && !isLoopbackOnly(version))
    log(
      `Core Tools ${version} listen on every address of this machine, and their admin routes need no key. Update to 4.13 or newer, which listen on 127.0.0.1 only.`,
    );
  // local/host chooses a free port itself and reports it: a port that is free now may be in use when the host listens.
  let listening = isCoreTools ? await requireFreePort(port) : undefined;
  const args = ['--port', String(listening ?? port), ...(cors.length > 0 ? ['--cors', cors.join(',')] : [])];
  const spawned = { cwd: app, env: { FUNCTIONS_WORKER_RUNTIME: 'node', ...settings } };
  const child = isCoreTools
    ? spawnChild('func', ['start', ...args], spawned)
    : spawnScript(OWN_HOST, ['--app', app, ...args, ...(state === undefined ? [] : ['--state', state])], spawned);
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', (line) => {
      if (line.startsWith('{"ready"')) listening = JSON.parse(line).port;
      else log(line);
    });
  const closed = once(child, 'close');
  await once(child, 'spawn');
  return {
    process: child,
    isCoreTools,
    get url() {
      return listening === undefined ? undefined : `http://127.0.0.1:${listening}`;
    },
    stop: () => (isCoreTools ? interruptChild(child, closed, CORE_TOOLS_STOP_WITHIN_MS) : endChild(child)),
    async kill() {
      killGroup(child);
      await closed;
    },
  };
}

/** Returns the port, or any free port for 0. Throws one sentence if the port is in use. */
export async function requireFreePort(port: number): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(port, '127.0.0.1', resolve);
  try {
    await promise;
    const address = server.address();
    return typeof address === 'object' && address ? address.port : port;
  } catch {
    throw new Error(`Port ${port} is in use: stop what listens there, or choose another with --port.`);
  } finally {
    server.close();
  }
}

/** Returns the version of Core Tools, or undefined if they are not installed. */
function findCoreTools(): string | undefined {
  const { status, stdout } = spawnSync('func', ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/** https://github.com/Azure/azure-functions-core-tools/pull/5484 */
function isLoopbackOnly(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 4 || (major === 4 && minor >= 13);
}
