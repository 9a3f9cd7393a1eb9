import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FUNCTIONS = join(ROOT, 'functions');
const ENTRY = 'every-function';

export interface BuildOptions {
  /** The module that registers the functions; every file of functions/ by default. */
  readonly entry?: string | undefined;
  /** Where `app.js` is written. */
  readonly folder: string;
}

/**
 * Bundles an app, with everything that it imports, into one `app.js`. A cold start reads one file instead of hundreds, and
 * nothing has to be installed beside it.
 */
export async function buildApp({ entry = ENTRY, folder }: BuildOptions): Promise<void> {
  const bundle = await rolldown({
    cwd: ROOT,
    input: { app: entry },
    platform: 'node',
    // The worker provides it at run time.
    external: ['@azure/functions-core'],
    plugins: [everyFunction],
    onLog(level, { message }) {
      // An import that is not found would stay in the bundle and fail where nothing is installed.
      if (level === 'warn') throw new Error(message);
    },
  });
  // Not minified: that would not load faster, and stack traces would lose their names and lines.
  await bundle.write({
    dir: folder,
    entryFileNames: '[name].js',
    format: 'esm',
    codeSplitting: false,
    sourcemap: true,
    // The sources lie beside it; without their text the map loads faster.
    sourcemapExcludeSources: true,
  });
  await bundle.close();
}

/** A module that imports every file of functions/, so that no list of them has to be kept. */
const everyFunction: Plugin = {
  name: ENTRY,
  resolveId: (source) => (source === ENTRY ? source : null),
  async load(id) {
    if (id !== ENTRY) return null;
    const files = (await readdir(FUNCTIONS)).filter((file) => file.endsWith('.ts')).toSorted();
    return files.map((file) => `import ${JSON.stringify(join(FUNCTIONS, file))};`).join('\n');
  },
};
