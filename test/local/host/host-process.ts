import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';
import { PATIENCE_MS } from '../../patience.ts';

const MAIN = fileURLToPath(new URL('../../../local/host/main.ts', import.meta.url));
export const FIXTURE = fileURLToPath(new URL('fixture', import.meta.url));

/** The host key of the tests. */
export const HOST_KEY = 'the key of this host';

export interface HostProcess {
  readonly child: ChildProcess;
  /** The lines of both outputs so far. */
  readonly lines: readonly string[];
  readonly url: string;
  /** Waits until at least `count` lines contain a text, and returns these lines. */
  logged(text: string, count?: number): Promise<string[]>;
  stop(): Promise<void>;
}

/** Starts the host as a child process on a free port, and returns when the host is ready. */
export async function startHost(env: Record<string, string>, ...args: readonly string[]): Promise<HostProcess> {
  const { child, lines } = spawnHost(['--app', FIXTURE, '--port', '0', ...args], env);
  const find = (text: string) => lines.filter((line) => line.includes(text));
  await vi.waitFor(() => expect(find('"ready":true')).toHaveLength(1), { timeout: PATIENCE_MS, interval: 20 });
  const { port } = JSON.parse(find('"ready":true')[0] ?? '') as { port: number };
  return {
    child,
    lines,
    url: `http://127.0.0.1:${port}`,
    async logged(text, count = 1) {
      await vi.waitFor(() => expect(find(text).length, lines.join('\n')).toBeGreaterThanOrEqual(count), {
        timeout: PATIENCE_MS,
        interval: 50,
      });
      return find(text);
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** Runs a host that is expected to fail, and returns its exit code and output. */
export async function runHost(args: readonly string[], env: Record<string, string> = {}) {
  const { child, lines } = spawnHost(args, env);
  const [code] = await once(child, 'close');
  return { code, lines };
}

function spawnHost(args: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ROWKEY_HOST_KEY: HOST_KEY, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', (line) => lines.push(line));
  return { child, lines };
}
