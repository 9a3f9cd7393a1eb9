import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { moduleFile } from './module-file.ts';

export type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const END_WITH_PARENT = moduleFile('./end-with-parent', import.meta.url).href;

interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs a script with this Node as a child that stops when this process ends, even by SIGKILL. */
export function spawnScript(script: string, args: readonly string[], options: SpawnOptions = {}): Child {
  return spawnChild(process.execPath, ['--import', END_WITH_PARENT, script, ...args], options);
}

/** Runs a program as a child in its own process group, so that Ctrl-C reaches only this process, which stops its children in order. */
export function spawnChild(file: string, args: readonly string[], { env = {}, cwd }: SpawnOptions = {}): Child {
  return spawn(file, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
}

/** Sends SIGTERM and waits for the exit. */
export async function endChild(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** Interrupts a child and, if it has not ended in time, kills it and its descendants. `closed` is its event. */
export async function interruptChild(child: Child, closed: Promise<unknown>, withinMs: number): Promise<void> {
  const timer = setTimeout(() => killGroup(child), withinMs);
  child.kill('SIGINT');
  await closed;
  clearTimeout(timer);
}

/** Kills a child and its descendants, which share its process group. Windows has no groups. */
export function killGroup(child: Child): void {
  if (process.platform === 'win32' || child.pid === undefined) return void child.kill('SIGKILL');
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    // No process of the group is left.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
