import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startFunctionsHost } from '../../../local/instance/functions-host.ts';
import { interruptChild, spawnChild } from '../../../local/instance/spawn-child.ts';
import { PATIENCE_MS } from '../../patience.ts';

/** The program that `func` of Core Tools starts; it ignores these signals. */
const standIn = (ignored: readonly string[]) => `
for (const signal of ${JSON.stringify(ignored)}) process.on(signal, () => console.log('ignored ' + signal));
setInterval(() => undefined, 1_000);
console.log('serving ' + process.pid);`;

/** As in the package of npm, `func` is a script that starts the program and forwards signals to it. */
const wrapper = (version: string) => `
const { spawn } = require('node:child_process');
if (process.argv.includes('--version')) {
  console.log('${version}');
  process.exit(0);
}
const program = spawn(process.execPath, [__dirname + '/host.mjs'], { stdio: 'inherit' });
program.on('exit', (code) => process.exit(code));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => program.kill(signal));`;

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

async function writePrograms(ignored: readonly string[], version = '4.13.0'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-func-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'host.mjs'), standIn(ignored));
  await writeFile(join(folder, 'func'), `#!${process.execPath}\n${wrapper(version)}`);
  await chmod(join(folder, 'func'), 0o755);
  return folder;
}

test.skipIf(process.platform === 'win32')('stops Core Tools, which ignore SIGTERM', { tags: ['slow'] }, async () => {
  const folder = await writePrograms(['SIGTERM']);
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`);
  const logged: string[] = [];
  const host = await startFunctionsHost({ app: folder, port: 0, settings: {}, log: (line) => logged.push(line) });
  const [, pid] = await vi.waitUntil(() => /serving (\d+)/.exec(logged.join('\n')), { timeout: PATIENCE_MS });
  expect(isRunning(Number(pid))).toBe(true);
  await host.stop();
  expect(isRunning(Number(pid))).toBe(false);
  expect(logged.join('\n')).not.toContain('ignored');
  // A part that has ended already is stopped again when the product ends.
  await host.stop();
});

test.skipIf(process.platform === 'win32')(
  'warns of Core Tools that listen on every address',
  { tags: ['slow'] },
  async () => {
    const warningsOf = async (version: string) => {
      const folder = await writePrograms([], version);
      vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`);
      const logged: string[] = [];
      const host = await startFunctionsHost({ app: folder, port: 0, settings: {}, log: (line) => logged.push(line) });
      await host.kill();
      return logged.filter((line) => line.includes('every address'));
    };
    expect(await warningsOf('4.6.0')).toEqual([
      'Core Tools 4.6.0 listen on every address of this machine, and their admin routes need no key. Update to 4.13 or newer, which listen on 127.0.0.1 only.',
    ]);
    expect(await warningsOf('4.13.0')).toEqual([]);
    expect(await warningsOf('5.0.1')).toEqual([]);
  },
);

test.skipIf(process.platform === 'win32')('kills what has not ended in time', { tags: ['slow'] }, async () => {
  const folder = await writePrograms(['SIGTERM', 'SIGINT']);
  const child = spawnChild(join(folder, 'func'), ['start']);
  const closed = once(child, 'close');
  const [line] = await once(child.stdout, 'data');
  await interruptChild(child, closed, 200);
  expect(child.signalCode).toBe('SIGKILL');
  const pid = Number(/\d+/.exec(String(line))?.[0]);
  // Its new parent has to take note of the end first.
  await vi.waitUntil(() => !isRunning(pid), { timeout: PATIENCE_MS });
});
