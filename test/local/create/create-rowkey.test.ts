import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildCreate } from '../../../local/commands/build-create.ts';

/** The built file of the initializer as npm runs it, without a terminal. */

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-create-'));
  await buildCreate(join(folder, 'built'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function run(...words: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; stdout: string; stderr: string }>();
  const args = [join(folder, 'built', 'create-rowkey.js'), ...words];
  execFile(process.execPath, args, { cwd: folder }, (error, stdout, stderr) =>
    resolve({ code: error?.code ?? 0, stdout, stderr }),
  );
  return promise;
}

test('asks nothing without a terminal, and prints the two commands that start the app', async () => {
  expect(await run()).toEqual({
    code: 0,
    stdout: '\nThe app is in the folder hours. To start it:\n\n  cd hours && npm install\n  npm start\n\n',
    stderr: '',
  });
  expect(await readdir(join(folder, 'hours', 'page'))).toContain('page.ts');
  const { code, stdout, stderr } = await run();
  expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^The folder .*hours is not empty/)]);
});

test('takes the name and the page from the command line', async () => {
  expect(await run('fleet', '--page', 'none', '--yes')).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(await readFile(join(folder, 'fleet', 'package.json'), 'utf8')).name).toBe('fleet');
  expect(await readdir(join(folder, 'fleet'))).not.toContain('page');
});

test('rejects a page that does not exist and a name that is not valid, each with what is accepted', async () => {
  expect(await run('other', '--page', 'vue')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Allowed choices are plain, tanstack, none.'),
  });
  expect(await run('Other')).toMatchObject({ code: 1, stderr: expect.stringContaining('must be 2 to 40 lower-case') });
  expect((await readdir(folder)).map((name) => name.toLowerCase())).not.toContain('other');
});
