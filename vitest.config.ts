import { defineConfig } from 'vitest/config';
import { PATIENCE_MS } from './test/patience.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'lib/model/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    // Ends only tests that hang: on a busy machine, a slow test may take four minutes.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // The emulator of the run writes its data to disk before its folder is deleted.
    teardownTimeout: 120_000,
    expect: { poll: { timeout: PATIENCE_MS, interval: 50 } },
  },
});
