import type { Reporter, TestModule } from 'vitest/node';

/** Prints what a run waited for: its slowest tests, and its slowest files with their set-up. */

const SHOWN = 20;

export class Slowest implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({
        name: `${module.relativeModuleId} > ${test.fullName}`,
        duration: test.diagnostic()?.duration ?? 0,
      })),
    );
    const files = modules.map((module) => {
      const { duration, collectDuration, prepareDuration, setupDuration, environmentSetupDuration } =
        module.diagnostic();
      const before = collectDuration + prepareDuration + setupDuration + environmentSetupDuration;
      return { name: module.relativeModuleId, duration: duration + before };
    });
    // A run of a few files needs no list.
    if (modules.length < SHOWN) return;
    print('tests', tests);
    print('files', files);
  }
}

function print(what: string, timed: readonly { readonly name: string; readonly duration: number }[]): void {
  const slowest = timed.toSorted((one, other) => other.duration - one.duration).slice(0, SHOWN);
  console.log(`\nSlowest ${what}:`);
  for (const { name, duration } of slowest) console.log(`${(duration / 1_000).toFixed(1).padStart(7)} s  ${name}`);
}
