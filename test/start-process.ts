import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const START = fileURLToPath(new URL('../local/start.ts', import.meta.url));

export interface StartProcess {
  readonly child: ChildProcess;
  /** Everything said so far, on both outputs. */
  said(): string;
  /** The lines that begin with `curl`. */
  commands(): string[];
  readonly url: string;
  /** Ends it and answers its exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Runs `npm start` without npm, and answers when it says that it is ready. */
export async function startCommand(args: readonly string[]): Promise<StartProcess> {
  const { child, said } = spawnCommand(START, args);
  await vi.waitFor(() => expect(said()).toContain('Rowkey is ready'), { timeout: 20_000, interval: 50 });
  return {
    child,
    said,
    commands: () =>
      said()
        .split('\n')
        .filter((line) => line.startsWith('curl')),
    url: /API {8}(\S+)\/api/.exec(said())?.[1] ?? '',
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      const [code] = await once(child, 'exit');
      return code;
    },
  };
}

/** Runs a command of `local/` to its end. */
export async function runCommand(script: string, args: readonly string[]) {
  const { child, said } = spawnCommand(fileURLToPath(new URL(`../local/${script}.ts`, import.meta.url)), args);
  const [code] = await once(child, 'close');
  return { code, said: said() };
}

function spawnCommand(script: string, args: readonly string[]) {
  const child = spawn(process.execPath, [script, ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const chunks: string[] = [];
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (chunk) => chunks.push(chunk));
  return { child, said: () => chunks.join('') };
}
