import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

test('a changeset raises the version, and its sentence is in the changelog', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'changelog-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const name of ['package.json', 'CHANGELOG.md', '.changeset/config.json']) await cp(name, join(folder, name));
  await writeFile(join(folder, '.changeset/one.md'), "---\n'rowkey': minor\n---\n\nSomething is new.\n");
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  await promisify(execFile)(process.execPath, [join(process.cwd(), 'node_modules/.bin/changeset'), 'version'], {
    cwd: folder,
  });
  expect(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).version).not.toBe(version);
  expect(await readFile(join(folder, 'CHANGELOG.md'), 'utf8')).toContain('Something is new.');
});
