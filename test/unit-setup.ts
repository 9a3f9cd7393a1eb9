import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { seedOfRun } from './seed.ts';
import { reportTried } from './tried-faults.ts';

/** Builds and starts nothing. */
export default async function setup(project: TestProject) {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-unit-'));
  project.provide('folder', folder);
  project.provide('seed', seedOfRun());
  project.provide('storage', 'memory');
  return async () => {
    reportTried(folder, undefined);
    await rm(folder, { recursive: true, force: true });
  };
}
