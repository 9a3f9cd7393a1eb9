import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The tests that `npm run mutation` runs: those of the engine and its features that need only storage, on accounts in memory, and take
 * moments. A mutant runs all of them that reach it, so each slow test makes every survivor slow.
 */
const TESTS = [
  'test/lib/engine/{consume,read,reconcile,write}/{consume,continuation,entity-batch,entity-write,first-delivery,hold,hold-attacks,judge-row}.test.ts',
  'test/lib/engine/{consume,read,reconcile,write}/{page-length,plan,poison,possible-entries,queue-message,reconcile,shared-writes,unique-claim}.test.ts',
  'test/lib/engine/note-change.test.ts',
  'test/lib/features/**/*.test.ts',
  'test/lib/operations/{index-clean-up,verify}.test.ts',
  'test/lib/store/{fields-apart,filters,index-ranges,part-of-a-key,store}.test.ts',
  'test/protocol/{archiving-and-moving,archiving-periods,creating-once,encrypting}.test.ts',
  'test/protocol/{compound-key,copies-in-the-partition,counting,fanning-out,keeping-indexes,keeping-the-order}.test.ts',
  'test/protocol/{keeping-totals,late-requests,overtaken-reconcilers,pausing-reads,referring,settling-by-the-queue}.test.ts',
  'test/rules/{expiring-members,hidden-rows,set-from-caller,transacting}.test.ts',
  'test/protocol/{losing-a-reply-*,surviving-faults,upgrading-a-key,transacting,verifying,verifying-totals,vertical-split,wide-entities}.test.ts',
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

export default defineConfig({
  test: {
    include: TESTS,
    strictTags: false,
    globalSetup: ['test/unit-setup.ts'],
    // The files share their modules, which a mutant would otherwise load for each of them.
    setupFiles: ['test/memory-setup.ts'],
    isolate: false,
    sequence: { sequencer: LikelyFirst },
    // A test whose event never happens fails before Stryker ends the process.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 30_000, interval: 50 } },
  },
});
