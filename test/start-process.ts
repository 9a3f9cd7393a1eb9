import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { PATIENCE_MS } from './patience.ts';
import { UNDER_FUNC } from './under-func.ts';

/** Ends the processes of a failed test; each process ends its own children. */
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) if (child.exitCode === null) child.kill('SIGKILL');
});

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SERVE_FIXTURES = new URL('fixtures/serve-fixtures.mjs', import.meta.url).href;

interface AppOptions {
  /** Runs the app of the repository, with its packs, instead of the fixtures' app. */
  readonly deployed?: boolean | undefined;
}

/** The environment in which a command of `local/` works with that app. */
export function envFor({ deployed = false }: AppOptions = {}): NodeJS.ProcessEnv {
  return deployed ? process.env : { ...process.env, NODE_OPTIONS: `--import=${SERVE_FIXTURES}` };
}

type Ask = (method: string, path: string, body?: object) => Promise<Response>;

interface StartProcess {
  readonly child: ChildProcess;
  /** Both outputs so far. */
  said(): string;
  /** The printed lines that begin with `curl`. */
  commands(): string[];
  readonly url: string;
  /** Returns a client with a token of these roles, as `npm run token` prints it. */
  as(...roles: readonly string[]): Promise<Ask>;
  /** Runs a command of `local/` on the data folder of the instance and waits for its end. */
  run(script: string, ...words: readonly string[]): ReturnType<typeof runCommand>;
  /** Ends the instance and returns its exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

interface FilesProcess {
  readonly folder: string;
  /** The running instance. */
  readonly process: StartProcess;
  /** Starts another instance on the same folder. Call it after the previous one has ended. */
  startAgain(): Promise<void>;
}

/** Runs `npm start` on its own data folder for all tests of the file; the first start gets `words`. */
export function useStartProcess(app: AppOptions = {}, words: readonly string[] = []): FilesProcess {
  let folder: string;
  let process: StartProcess;
  const startAgain = async () => {
    process = await startCommand(folder, [], app);
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rowkey-start-'));
    process = await startCommand(folder, words, app);
  });
  afterAll(async () => {
    // Awaited before the folder is deleted, because the emulator writes its data when it ends.
    if (process && process.child.exitCode === null && process.child.signalCode === null) await process.end();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    get folder() {
      return folder;
    },
    get process() {
      return process;
    },
    startAgain,
  };
}

/** Runs `npm start` without npm, on free ports, and returns when the instance is ready. */
export async function startCommand(
  data: string,
  words: readonly string[] = [],
  app: AppOptions = {},
): Promise<StartProcess> {
  const start = ['--port', '0', '--data', data, ...words, ...(UNDER_FUNC ? ['--func'] : [])];
  const { child, said } = spawnCommand('start', start, app);
  await vi.waitFor(() => expect(said()).toContain('Rowkey is ready'), {
    timeout: PATIENCE_MS,
    interval: 50,
  });
  const url = /API {8}(\S+)\/api/.exec(said())?.[1] ?? '';
  return {
    child,
    said,
    commands: () =>
      said()
        .split('\n')
        .filter((line) => line.startsWith('curl')),
    url,
    async as(...roles) {
      const words = [...roles.flatMap((role) => ['--role', role]), '--data', data];
      const { said: token } = await runCommand('token', words, app);
      const headers = { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' };
      return (method, path, body) =>
        fetch(`${url}/api/${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    },
    run: (script, ...others) => runCommand(script, [...others, '--data', data], app),
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      const [code] = await once(child, 'exit');
      return code;
    },
  };
}

/** Runs a command of `local/` and waits for its end. */
export function runCommand(script: string, words: readonly string[], app: AppOptions = {}) {
  return runScript(`local/commands/${script}.ts`, words, app);
}

/** Runs a script to its end. */
export async function runScript(path: string, words: readonly string[], app: AppOptions = {}) {
  const { child, said } = spawnScript(path, words, app);
  const [code] = await once(child, 'close');
  return { code, said: removeProgress(said()) };
}

/** A command that takes long on a busy machine also prints its progress. */
export function removeProgress(said: string): string {
  return said.replaceAll(/^\S+ rows\b.*…\n/gm, '');
}

/** Runs a shell command line. */
export function shell(line: string, app: AppOptions = {}) {
  return promisify(execFile)('sh', ['-c', line], { cwd: ROOT, env: envFor(app) });
}

/** Starts a command of `local/`. */
export function spawnCommand(script: string, words: readonly string[], app: AppOptions = {}) {
  return spawnScript(`local/commands/${script}.ts`, words, app);
}

export function spawnScript(path: string, words: readonly string[], app: AppOptions = {}) {
  const child = spawn(process.execPath, [join(ROOT, path), ...words], {
    cwd: ROOT,
    env: envFor(app),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const chunks: string[] = [];
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (chunk) => chunks.push(chunk));
  return { child, said: () => chunks.join('') };
}
