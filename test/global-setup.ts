import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { startAzurite } from '../local/instance/azurite.ts';
import { startIdentityProvider } from '../local/instance/identity-provider.ts';
import { buildFixtures } from './fixtures/build.ts';
import { acceptsMemory } from './in-process.ts';
import { seedOfRun } from './seed.ts';
import {
  BACKUP_ACCOUNTS,
  DOOR_ACCOUNTS,
  RACE_ACCOUNTS,
  RESTORE_ACCOUNTS,
  SECOND_ACCOUNT,
  WALK_ACCOUNTS,
} from './storage.ts';
import { reportTried } from './tried-faults.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The connection string of the storage account of each test file, by path; or accounts in memory, for some files or all. */
    storage: Record<string, string> | 'memory';
    /** The temporary folder of the run, which the teardown deletes. */
    folder: string;
    /** Differs in each build of the apps. */
    build: string;
    /** Determines the samples (points.ts). */
    seed: string;
    /** The file from which `npm run rules` or `npm run promises` takes something out, and what is left of it. */
    cut: { readonly path: string; readonly source: string };
  }
}

/**
 * Builds dist/app.js and the fixtures' app, so that no test runs a stale one (some seconds). Starts the emulator for the whole
 * run, with a storage account for each test file so that files run in parallel.
 */
export default async function setup(project: TestProject) {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-test-'));
  // Halves the start of the processes that the tests start.
  process.env.NODE_COMPILE_CACHE = join(folder, 'compile-cache');
  // The TypeScript compiler is a program in Go, and frees memory less often. It takes a third less processor time.
  process.env.GOGC = '400';
  const build = async () => {
    await buildApps();
    project.provide('build', randomUUID());
  };
  await build();
  project.onTestsRerun(build);
  const mayBeInMemory = [
    ...Object.values(BACKUP_ACCOUNTS),
    ...DOOR_ACCOUNTS,
    ...Object.values(RESTORE_ACCOUNTS).flat(),
  ].map((url) => fileURLToPath(url));
  const further = [
    ...[SECOND_ACCOUNT, ...WALK_ACCOUNTS, ...RACE_ACCOUNTS].map((url) => fileURLToPath(url)),
    ...mayBeInMemory,
  ];
  const files = [...(await project.globTestFiles()).testFiles, ...further];
  const [first, ...others] = files.map((_, index) => ({
    name: `test${index}`,
    key: randomBytes(64).toString('base64'),
  }));
  if (!first) throw new Error('There are no test files.');
  const accounts = [first, ...others] as const;
  // Tables are kept in memory: in a folder, Azurite writes all of them out every five seconds. Queues are not: in memory, it stalls
  // after thousands of deleted messages.
  const [inMemory, inFolder] = await Promise.all([
    startAzurite({ folder: undefined, accounts }),
    startAzurite({ folder, accounts }),
  ]);
  project.provide('folder', folder);
  // Creates the signing key that all products of the run share (product.ts): to generate one takes a tenth of a second.
  await (await startIdentityProvider({ folder })).stop();
  const seed = seedOfRun();
  project.provide('seed', seed);
  const printSeed = () =>
    process.env.POINTS === 'all' || console.log(`\nSamples of cases: repeat them with TEST_SEED=${seed}.`);
  // Also at the start, for a run that is interrupted.
  printSeed();
  project.provide(
    'storage',
    Object.fromEntries(
      files.map((file, index) => [
        file,
        process.env.STORAGE === 'memory' && (mayBeInMemory.includes(file) || acceptsMemory(file))
          ? 'memory'
          : inFolder.connectionString(`test${index}`).replace(inFolder.endpoints.table, inMemory.endpoints.table),
      ]),
    ),
  );
  return async () => {
    await Promise.all([inMemory.stop(), inFolder.stop()]);
    printSeed();
    reportTried(folder, process.env.WRITE_FAULTS);
    // A process that is still ending may write its compile cache.
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  };
}

async function buildApps(): Promise<void> {
  await Promise.all([promisify(execFile)(process.execPath, ['local/commands/build.ts']), buildFixtures()]);
}
