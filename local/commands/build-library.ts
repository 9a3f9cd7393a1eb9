import { spawnSync } from 'node:child_process';
import { cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { APP_PAGES, toAppPage } from '../package/app-page.ts';
import { buildConsole } from '../package/build-console.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The library needs its own manifest: `npm pack` includes the `main` of a manifest, which is the whole app here. */
const LIBRARY = join(ROOT, 'dist', 'library');

/** What the command line needs; the app that this repository deploys does without. */
const COMMAND_LINE = ['cli-progress', 'commander', 'croner', 'csv-parse', 'modern-tar'];
/** What a command of development needs, and no deployed app: an app installs it itself. */
const TOOLS = ['azurite', 'fast-check', 'rolldown'];
/**
 * Builds the package that other Functions apps install: JavaScript and declarations of lib/index.ts, of the client
 * and of the store for tests, the console, the command line `rowkey`, and the documentation.
 */
export async function buildLibrary(folder = LIBRARY): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  // One checker takes two thirds of the processor time of four, which repeat a part of their work.
  const args = ['--project', join(ROOT, 'tsconfig.build.json'), '--outDir', folder, '--checkers', '1'];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The library does not compile.\n${stdout}`);
  // Nobody imports a command.
  for await (const file of glob('local/**/*.d.ts', { cwd: folder })) await rm(join(folder, file));
  // Beside lib/register-functions.js, which serves it: each file once, compressed.
  const console = join(folder, 'lib', 'console');
  await buildConsole(console);
  for await (const file of glob('**/*.br', { cwd: console })) await rm(join(console, file.slice(0, -'.br'.length)));
  await nameThePackage(join(folder, 'lib', 'command-line.js'));
  const root = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const { name, description, engines, dependencies, devDependencies, peerDependencies } = root;
  const commandLine = Object.fromEntries(COMMAND_LINE.map((dependency) => [dependency, devDependencies[dependency]]));
  const tools = Object.fromEntries(TOOLS.map((tool) => [tool, `^${devDependencies[tool]}`]));
  const exports = {
    '.': { types: './lib/index.d.ts', default: './lib/index.js' },
    './client': { types: './lib/client/index.d.ts', default: './lib/client/index.js' },
    './sign-in': { types: './lib/client/sign-in.d.ts', default: './lib/client/sign-in.js' },
    './testing': { types: './lib/testing/index.d.ts', default: './lib/testing/index.js' },
  };
  const manifest = {
    ...{ name, description, ...publishedFields(root), engines },
    ...{ types: exports['.'].types, exports, bin: { rowkey: './local/commands/rowkey.js' } },
    ...{
      files: ['lib', 'local', 'docs', 'infra', 'host.json'],
      dependencies: { ...dependencies, ...commandLine },
      peerDependencies: { ...peerDependencies, ...tools },
      peerDependenciesMeta: Object.fromEntries(TOOLS.map((tool) => [tool, { optional: true }])),
    },
  };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  await cp(join(ROOT, 'infra'), join(folder, 'infra'), {
    recursive: true,
    filter: (file) => !file.endsWith('model.json'),
  });
  for (const file of ['LICENSE', 'host.json']) await cp(join(ROOT, file), join(folder, file));
  await cp(join(ROOT, 'local', 'package', 'README.md'), join(folder, 'README.md'));
  for (const page of APP_PAGES) {
    await mkdir(join(folder, dirname(page)), { recursive: true });
    await writeFile(join(folder, page), toPackedPage(page, await readFile(join(ROOT, page), 'utf8')));
  }
}

/** What the manifest of each published package has from that of the repository, which is private: it is the app of a clone. */
export function publishedFields(root: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { version, license, keywords, homepage, bugs, repository, publishConfig, type } = root;
  return { version, license, keywords, homepage, bugs, repository, publishConfig, type };
}

/** Messages of the package name its own command line instead of npm scripts. */
async function nameThePackage(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const changed = text.replace('const IS_PACKAGE = false', 'const IS_PACKAGE = true');
  if (changed === text) throw new Error(`${file} does not say IS_PACKAGE.`);
  await writeFile(file, changed);
}

/** Returns a page whose links lead to files of the package, and whose commands are those of the package. */
function toPackedPage(page: string, text: string): string {
  const packed = new Set([...APP_PAGES, 'LICENSE', 'host.json']);
  return toAppPage(
    text.replaceAll(/\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)/g, (link, label: string, target: string) =>
      packed.has(posix.join(dirname(page), target)) ? link : label,
    ),
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await buildLibrary();
