import { globSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { isInProcess } from '../in-process.ts';

/**
 * The tests that `npm run mutation` runs: those that reach the engine and its features, need only storage, which is then accounts in memory,
 * and take moments. A mutant runs all of them that reach it, so each slow test makes every survivor slow.
 */
const TESTS = [
  'test/lib/{define,engine,features,store}/**/*.test.ts',
  'test/lib/access/{granted-rows,own}.test.ts',
  'test/lib/operations/{foreign-rows,index-clean-up,model-guard,overview,verify,verify-derived}.test.ts',
  'test/lib/operations/backup/settle-restored.test.ts',
  'test/protocol/*.test.ts',
  'test/rules/*.test.ts',
  'test/scenarios/{comparing-instants,reading-an-index-that-is-not-built,underscores-in-fields}.test.ts',
];

/**
 * Those that take long for what they notice beside the others, that depend on what else a process has loaded, or whose tests run
 * concurrently, so that nothing tells which of them reaches a mutant.
 */
const EXCLUDED = [
  'test/lib/define/{keys,schema}/**',
  'test/lib/engine/reconcile/hold.test.ts',
  'test/protocol/{injecting,keeping-the-time-limits,moving-beside-*,several-accounts,sharing-an-account}.test.ts',
  'test/protocol/{racing-writers-and-messages,spelling-engine-names,wide-entities-under-faults}.test.ts',
  'test/rules/{cedar,limited-operations,malformed-rules,proof}.test.ts',
];

/** The files that failed last are first, because mutants beside each other often fail in one test; then the shortest ones. */
class LikelyFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]) {
    const rank = (specification: TestSpecification) => {
      const result = this.ctx.cache.getTestSpecificationResult(specification);
      return result?.failed ? 0 : 1 + (result?.duration ?? 0);
    };
    return specifications.toSorted((one, other) => rank(one) - rank(other));
  }
}

/** As in `npm test`. The type of a configuration lacks the filter, which Vitest reads from it as from the command line. */
const WITHOUT_SLOW = { tags: [{ name: 'slow' }, { name: 'long' }], tagsFilter: ['!slow'] };

export default defineConfig({
  test: {
    include: globSync(TESTS, { exclude: EXCLUDED }).filter((file) => isInProcess(file, { hasStorage: true })),
    globalSetup: ['test/unit-setup.ts'],
    // The files share their modules, which a mutant would otherwise load for each of them.
    setupFiles: ['test/mutation/coverage-setup.ts', 'test/memory-setup.ts'],
    ...WITHOUT_SLOW,
    isolate: false,
    // Stryker's own setup comes first.
    sequence: { sequencer: LikelyFirst, setupFiles: 'list' },
    // A test whose event never happens fails before Stryker ends the process.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 30_000, interval: 50 } },
  },
});
