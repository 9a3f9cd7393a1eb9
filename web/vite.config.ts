import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** The path under which the product serves the console. */
const BASE = '/console/';
const APP = process.env.ROWKEY_ORIGIN ?? 'http://127.0.0.1:7071';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: BASE,
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // For `npm run console`: the app of a running `npm start`.
  server: { proxy: { '/api': APP, '^/console/config\\.json': APP } },
  build: {
    outDir: fileURLToPath(new URL('../dist/console', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy allows no data: URL for scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The typed client loads filters when they are first used; the console has them from the start.
    rolldownOptions: { checks: { ineffectiveDynamicImport: false } },
  },
});
