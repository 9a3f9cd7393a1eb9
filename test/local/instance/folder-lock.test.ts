import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { lockFolder } from '../../../local/instance/folder-lock.ts';

const MODULE = new URL('../../../local/instance/folder-lock.ts', import.meta.url).href;
const folder = await mkdtemp(join(inject('folder'), 'lock-'));

/** A process that reports whether it got the lock and holds it until it is killed. */
async function contender() {
  const script = `import { lockFolder } from '${MODULE}';
    console.log(lockFolder('${folder}') ? 'got' : 'refused');
    setInterval(() => undefined, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await once(child.stdout, 'data');
  return {
    said: String(said).trim(),
    async kill() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('one of several concurrent processes locks the folder, and another one after the holder was killed', {
  tags: ['slow'],
}, async () => {
  for (let round = 0; round < 2; round += 1) {
    const all = await Promise.all(Array.from({ length: 5 }, contender));
    const others = all.filter(({ said }) => said === 'refused');
    expect(others).toHaveLength(4);
    expect(lockFolder(folder)).toBeUndefined();
    await Promise.all(all.map(({ kill }) => kill()));
  }
});

test('a released folder can be locked again, and a deleted folder can be released', async () => {
  const release = lockFolder(folder);
  expect(lockFolder(folder)).toBeUndefined();
  release?.();
  const again = lockFolder(folder);
  expect(again).toBeDefined();
  await rm(folder, { recursive: true });
  again?.();
});
