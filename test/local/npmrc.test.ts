import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import { parse } from 'yaml';

const folder = await mkdtemp(join(inject('folder'), 'npmrc-'));
/** Creates a project with the .npmrc of this repository and a dependency on an engine version that does not exist. */
const project = { name: 'project', version: '1.0.0', dependencies: { tool: 'file:tool' } };
const tool = { name: 'tool', version: '1.0.0', engines: { node: '>=9999' } };

beforeAll(async () => {
  await mkdir(join(folder, 'tool'));
  await cp('.npmrc', join(folder, '.npmrc'));
  await writeFile(join(folder, 'package.json'), JSON.stringify(project));
  await writeFile(join(folder, 'tool', 'package.json'), JSON.stringify(tool));
  await npm('install', '--package-lock-only');
});

/** Runs npm as a user does, without the environment of an npm that started this test. */
function npm(...words: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));
  return new Promise((resolve) =>
    execFile('npm', [...words, '--offline'], { cwd: folder, env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    ),
  );
}

test('npm ci prints its summary without a warning about engines', { tags: ['slow'] }, async () => {
  const { code, stdout, stderr } = await npm('ci');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('added 1 package');
});

test('npm ci prints an error and fails when the lock file does not match', { tags: ['slow'] }, async () => {
  const other = { ...project, dependencies: { ...project.dependencies, missing: '1.0.0' } };
  await writeFile(join(folder, 'package.json'), JSON.stringify(other));
  const { code, stderr } = await npm('ci');
  expect(code).toBe(1);
  expect(stderr).toContain('npm error');
});

test('Dependabot proposes new versions of all packages every week', async () => {
  const { updates } = parse(await readFile('.github/dependabot.yml', 'utf8'));
  const [npmUpdates] = updates.filter((update: Record<string, unknown>) => update['package-ecosystem'] === 'npm');
  expect(npmUpdates).toMatchObject({ directory: '/', schedule: { interval: 'weekly' } });
  expect(npmUpdates).not.toHaveProperty('ignore');
});
