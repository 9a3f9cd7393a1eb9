import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { type Instance, readInstance, removeInstance, writeInstance } from '../../../local/instance/instance.ts';

const instance: Instance = {
  url: 'http://127.0.0.1:7071',
  issuer: 'http://127.0.0.1:7080',
  jwksUri: 'http://127.0.0.1:7080/.well-known/jwks.json',
  audience: 'api://rowkey',
  tables: 'http://127.0.0.1:10002/devstoreaccount1',
  queues: 'http://127.0.0.1:10001/devstoreaccount1',
  blobs: 'http://127.0.0.1:10000/devstoreaccount1',
  accounts: 1,
  app: '/apps/fleet',
  roles: ['reader'],
  pid: process.pid,
};
const folder = await mkdtemp(join(inject('folder'), 'instance-'));

test('finds an instance while it runs and not after its removal', async () => {
  const data = join(folder, 'new', 'data');
  expect(await readInstance(data)).toBeUndefined();
  await writeInstance(data, instance);
  expect(await readInstance(data)).toEqual(instance);
  expect(await readdir(data)).toEqual(['instance.json']);
  await removeInstance(data);
  expect(await readInstance(data)).toBeUndefined();
  await removeInstance(data);
});

test('finds no instance if its process has ended', async () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  await writeInstance(folder, { ...instance, pid });
  expect(await readInstance(folder)).toBeUndefined();
});

test.each(['', '{', '[]', '{"url":"http://127.0.0.1:7071"}', JSON.stringify({ ...instance, pid: -1 })])(
  'reports a file that describes no instance in one sentence: %j',
  async (text) => {
    await writeFile(join(folder, 'instance.json'), text);
    await expect(readInstance(folder)).rejects.toThrow(
      /instance\.json is not the description of an instance: delete it/,
    );
  },
);
