import { readdir, rm } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FUNCTIONS = join(ROOT, 'functions');
const ENTRY = 'every-function';
const CHUNKS = 'chunks';

export interface BuildOptions {
  /** The module that registers the functions; every file of functions/ by default. */
  readonly entry?: string | undefined;
  /** The folder for `app.js`. */
  readonly folder: string;
}

/**
 * Bundles an app and everything that it imports: into `app.js`, and into `chunks` what is loaded when it is used. A cold start
 * reads a few files instead of hundreds, and no packages have to be installed.
 */
export async function buildApp({ entry = ENTRY, folder }: BuildOptions): Promise<void> {
  const bundle = await rolldown({
    cwd: ROOT,
    input: { app: entry },
    platform: 'node',
    // The worker provides it at run time.
    external: ['@azure/functions-core'],
    plugins: [everyFunction, httpByRequire],
    onLog(level, { message }) {
      // An unresolved import would stay in the bundle and fail in Azure, where no package is installed.
      if (level === 'warn') throw new Error(message);
    },
  });
  const { output } = await bundle.write({
    dir: folder,
    entryFileNames: '[name].js',
    // What is imported only when it is used has a file of its own, which a cold start does not read.
    chunkFileNames: `${CHUNKS}/[name].js`,
    format: 'esm',
    // The engine parses fewer characters at a cold start. Names stay as they are, for stack traces.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    sourcemap: true,
    // The map loads faster without the sources, to which it refers by path.
    sourcemapExcludeSources: true,
  });
  await bundle.close();
  await removeOthers(folder, new Set(output.map(({ fileName }) => fileName)));
}

/** Removes the chunks of earlier builds. Those of this build are never absent, because a host may be loading them. */
async function removeOthers(folder: string, built: ReadonlySet<string>): Promise<void> {
  for (const file of await readdir(join(folder, CHUNKS)).catch(() => []))
    if (!built.has(`${CHUNKS}/${file}`)) await rm(join(folder, CHUNKS, file), { force: true });
}

/** Resolves a virtual module that imports every file of functions/, so that no list has to be maintained. */
const everyFunction: Plugin = {
  name: ENTRY,
  resolveId: (source) => (source === ENTRY ? source : null),
  async load(id) {
    if (id !== ENTRY) return null;
    const files = (await readdir(FUNCTIONS)).filter((file) => file.endsWith('.ts')).toSorted();
    return files.map((file) => `import ${JSON.stringify(join(FUNCTIONS, file))};`).join('\n');
  },
};

const HTTP = '\0http-by-require';

/**
 * Replaces imports of `node:http` by a `require`. An import reads every export, of which `WebSocket` loads the whole of undici,
 * so that a cold start would wait for it and keep its memory.
 */
const httpByRequire: Plugin = {
  name: HTTP,
  resolveId: (source, _importer, { kind }) =>
    kind === 'import-statement' && /^(node:)?http$/.test(source) ? HTTP : null,
  load(id) {
    if (id !== HTTP) return null;
    // An export with a getter is one that Node loads when it is used.
    const names = Object.entries(Object.getOwnPropertyDescriptors(http)).flatMap(([name, { get }]) =>
      get ? [] : [name],
    );
    return `import { createRequire } from 'node:module';
const http = createRequire(import.meta.url)('node:http');
export default http;
export const { ${names.join(', ')} } = http;`;
  },
};
