import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { acceptsMemory, isInProcess } from './test/in-process.ts';
import { isLeftToAll, isNightly } from './test/left-to-all.ts';
import { LongestFirst } from './test/longest-first.ts';
import { PATIENCE_MS } from './test/patience.ts';
import { Slowest } from './test/slowest.ts';

const TESTS = ['test/**/*.test.ts', 'model/**/*.test.ts', 'examples/**/*.test.ts'];

const textOf = (file: string) => readFileSync(file, 'utf8');
/** The files that take samples or count faults, and those of which `npm test` runs nothing, not every test, or on accounts in memory. */
const isOfEveryPoint = (file: string) =>
  isLeftToAll(file) ||
  /\/(points|tried-faults|fault-driver|write-contract|console)\.ts'|'slow'/.test(textOf(file)) ||
  acceptsMemory(file);

const isOfRun: Readonly<Record<string, (file: string) => boolean>> = {
  all: (file) => isOfEveryPoint(file) && !isNightly(file),
  // The same files, with samples, but those that reach no storage: `npm test` has run them, without what is slow.
  some: (file) =>
    isOfEveryPoint(file) && (!/^test\/(model|simulation)\//.test(file) || textOf(file).includes("'slow'")),
  few: (file) => !isLeftToAll(file),
};
const files = globSync(TESTS).filter(isOfRun[process.env.POINTS ?? ''] ?? (() => true));
/** With `STORAGE=memory`, the unit tests are also those that need only storage, on accounts in memory. */
const hasMemory = process.env.STORAGE === 'memory';
const unit = files.filter((file) => isInProcess(file, { hasStorage: hasMemory }));
const setupFiles = ['test/separate-files.ts', ...(hasMemory ? ['test/memory-setup.ts'] : [])];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: unit,
          globalSetup: ['test/unit-setup.ts'],
          setupFiles,
        },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: files.filter((file) => !unit.includes(file)),
          globalSetup: ['test/global-setup.ts'],
          setupFiles,
        },
      },
    ],
    // What takes more than about half a second of processor time. `npm test` leaves it to `npm run test:storage`.
    // Files of which `npm run test:unit` runs nothing have `@module-tag long`.
    tags: [{ name: 'slow' }, { name: 'long' }],
    // A process for each file would load the SDKs 350 times.
    isolate: false,
    reporters: ['default', new Slowest()],
    // Many tests wait for the emulator, for processes that they start, and for time limits.
    maxWorkers: Math.max(6, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    // For what hangs, and not for what is slow: beside three other runs there are tests that take more than ten minutes.
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
    // The emulator of the run writes out all that it was told, and its folder is removed.
    teardownTimeout: 120_000,
    expect: { poll: { timeout: PATIENCE_MS, interval: 50 } },
  },
});
