import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpRequest } from '@azure/functions';
import { expect, onTestFinished, test } from 'vitest';
import { httpDoor } from '../../kit/http.ts';

const request = new HttpRequest({ method: 'GET', url: 'http://127.0.0.1/a.txt' });

async function createFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'static-folder-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test('a static folder reads a file again after a failed read', async () => {
  const folder = await createFolder();
  const file = join(folder, 'a.txt');
  await writeFile(file, 'content');
  await writeFile(join(folder, 'b.txt'), 'other');
  const { respond } = httpDoor.createStaticFolder(folder);
  expect(await respond('b.txt', request)).toMatchObject({ status: 200 });
  await rename(file, `${file}.away`);
  await expect(respond('a.txt', request)).rejects.toMatchObject({ code: 'ENOENT' });
  await rename(`${file}.away`, file);
  expect(await respond('a.txt', request)).toMatchObject({ status: 200, body: Buffer.from('content') });
});

test('a static folder lists its files again after a failed listing', async () => {
  const folder = join(await createFolder(), 'public');
  // A link to itself cannot be listed.
  await symlink(folder, folder);
  const { respond } = httpDoor.createStaticFolder(folder);
  await expect(respond('a.txt', request)).rejects.toMatchObject({ code: 'ELOOP' });
  await rm(folder);
  await mkdir(folder);
  await writeFile(join(folder, 'a.txt'), 'content');
  expect(await respond('a.txt', request)).toMatchObject({ status: 200 });
});
