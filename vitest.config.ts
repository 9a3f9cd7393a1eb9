import { defineConfig } from 'vitest/config';
import { PATIENCE_MS } from './test/patience.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'lib/model/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    // For what hangs, and not for what is slow: beside much other work there are tests that take four minutes.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // The emulator of the run writes out all that it was told, and its folder is removed.
    teardownTimeout: 120_000,
    expect: { poll: { timeout: PATIENCE_MS, interval: 50 } },
  },
});
