import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';

/**
 * Puts the functions, with all that they import, into dist/app.js. A cold start reads this one file where it would read
 * hundreds, and nothing needs to be installed beside it.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FUNCTIONS = join(ROOT, 'functions');
const ENTRY = 'every-function';

/** A module that imports every file of functions/, so that there is no list of them to keep. */
const everyFunction: Plugin = {
  name: ENTRY,
  resolveId: (source) => (source === ENTRY ? source : null),
  async load(id) {
    if (id !== ENTRY) return null;
    const files = (await readdir(FUNCTIONS)).filter((file) => file.endsWith('.ts')).toSorted();
    return files.map((file) => `import ${JSON.stringify(join(FUNCTIONS, file))};`).join('\n');
  },
};

const bundle = await rolldown({
  cwd: ROOT,
  input: { app: ENTRY },
  platform: 'node',
  // The worker provides it at run time.
  external: ['@azure/functions-core'],
  plugins: [everyFunction],
  onLog(level, { message }) {
    // An import that is not found would be left as it is, and fail only where nothing is installed.
    if (level === 'warn') throw new Error(message);
  },
});
// Not minified: it would load no faster, and the lines and names in a stack trace would tell nothing.
await bundle.write({
  dir: join(ROOT, 'dist'),
  entryFileNames: '[name].js',
  format: 'esm',
  codeSplitting: false,
  sourcemap: true,
  // The sources lie beside it; without their text the map is read faster.
  sourcemapExcludeSources: true,
});
await bundle.close();
