import { execFile } from 'node:child_process';
import { glob, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Plugin, rolldown } from 'rolldown';
import { moduleFile } from '../instance/module-file.ts';
import { isCompiled } from './load-bundle.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FUNCTIONS = join(ROOT, 'functions');
const COMPILE = fileURLToPath(moduleFile('./compile-bundle', import.meta.url));
const APP = fileURLToPath(moduleFile('./app', import.meta.url));
const ENTRY = 'every-file';
const CHUNKS = 'chunks';

interface BuildOptions {
  /** The modules that register the functions, with absolute paths; every file of functions/ by default. */
  readonly files?: readonly string[] | undefined;
  /** The folder of the app, to which its source map refers; this repository by default. */
  readonly root?: string | undefined;
  /** The folder for `app.js`. */
  readonly folder: string;
  /** Plugins of the bundler. */
  readonly plugins?: readonly Plugin[];
}

/**
 * Bundles an app and everything that it imports into `main.cjs`, and into `chunks` what is loaded when it is used. A cold start
 * reads a few files instead of hundreds, and no packages have to be installed. `app.js` loads the bundle, which is CommonJS
 * because Node gives V8 compiled code for scripts, and for ES modules only with a flag.
 */
export async function buildApp({ files, root = ROOT, folder, plugins = [] }: BuildOptions): Promise<void> {
  const main = await rolldown({
    cwd: root,
    input: { main: ENTRY },
    platform: 'node',
    // The worker provides it at run time.
    external: ['@azure/functions-core'],
    plugins: [importFiles(files ?? (await listFunctions())), ...plugins],
    onLog(level, { message }) {
      // An unresolved import would stay in the bundle and fail in Azure, where no package is installed.
      if (level === 'warn') throw new Error(message);
    },
  });
  const { output } = await main.write({
    dir: folder,
    entryFileNames: '[name].cjs',
    // What is imported only when it is used has a file of its own, which a cold start does not read.
    chunkFileNames: `${CHUNKS}/[name].cjs`,
    format: 'cjs',
    // V8 keeps one byte for each character instead of two.
    charset: 'ascii',
    // The engine parses fewer characters at a cold start. Names stay as they are, for stack traces.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    sourcemap: true,
    // The map loads faster without the sources, to which it refers by path.
    sourcemapExcludeSources: true,
  });
  await main.close();
  await removeOthers(folder, new Set(output.map(({ fileName }) => fileName)));
  const app = await rolldown({ input: APP, platform: 'node' });
  await app.write({ file: join(folder, 'app.js'), format: 'esm' });
  await app.close();
}

/**
 * Adds the code that V8 compiles for an app in this build of Node, and removes that of earlier builds. Other builds of Node
 * ignore it. Returns the error of an app that cannot be loaded here, for example because a setting is missing.
 */
export async function compileApp(folder: string): Promise<string | undefined> {
  for await (const file of glob('main.cjs.v*', { cwd: folder })) await rm(join(folder, file), { force: true });
  const bundle = join(folder, 'main.cjs');
  for (;;) {
    const source = await readFile(bundle);
    const failure = await promisify(execFile)(process.execPath, [COMPILE, bundle]).then(
      () => undefined,
      (error: unknown) => String(Object(error).stderr),
    );
    // If this is false, another build has written its bundle, or the code of an older one, to the folder meanwhile.
    if (failure === undefined ? isCompiled(bundle) : source.equals(await readFile(bundle))) return failure;
  }
}

/** Removes the chunks of earlier builds. Those of this build are never absent, because a host may be loading them. */
async function removeOthers(folder: string, built: ReadonlySet<string>): Promise<void> {
  for (const file of await readdir(join(folder, CHUNKS)).catch(() => []))
    if (!built.has(`${CHUNKS}/${file}`)) await rm(join(folder, CHUNKS, file), { force: true });
}

/** So that no list has to be maintained. */
async function listFunctions(): Promise<string[]> {
  const files = (await readdir(FUNCTIONS)).filter((file) => file.endsWith('.ts')).toSorted();
  return files.map((file) => join(FUNCTIONS, file));
}

/** Resolves a virtual module that imports all files of an app. */
function importFiles(files: readonly string[]): Plugin {
  return {
    name: ENTRY,
    resolveId: (source) => (source === ENTRY ? source : null),
    load: (id) => (id === ENTRY ? files.map((file) => `import ${JSON.stringify(file)};`).join('\n') : null),
  };
}
