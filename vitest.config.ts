import { defineConfig } from 'vitest/config';
import { PATIENCE_MS } from './test/patience.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    // For what hangs, and not for what is slow: the longest test takes a sixth of it where nothing else runs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: PATIENCE_MS, interval: 50 } },
  },
});
