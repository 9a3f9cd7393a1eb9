import { spawnSync } from 'node:child_process';
import { cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildConsole } from '../package/build-console.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The library needs its own manifest: `npm pack` includes the `main` of a manifest, which is the whole app here. */
export const LIBRARY = join(ROOT, 'dist', 'library');

/** What the command line needs; the app that this repository deploys does without. */
const COMMAND_LINE = ['cli-progress', 'commander'];
/** The oldest version that all dependencies support. This repository works on Node 20, because npm ci installs a newer Node. */
const NODE = '>=22.0.0';

/**
 * Builds the package that other Functions apps install: JavaScript and declarations of lib/index.ts and of the
 * client, the console, the command line `rowkey`, and the documentation.
 */
export async function buildLibrary(folder = LIBRARY): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, 'docs'), { recursive: true });
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const args = ['--project', join(ROOT, 'tsconfig.build.json'), '--outDir', folder];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The library does not compile.\n${stdout}`);
  // Beside lib/register-functions.js, which serves it.
  await buildConsole(join(folder, 'lib', 'console'));
  await nameThePackage(join(folder, 'lib', 'command-line.js'));
  const { name, version, description, license, type, dependencies, devDependencies, peerDependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  );
  const commandLine = Object.fromEntries(COMMAND_LINE.map((dependency) => [dependency, devDependencies[dependency]]));
  const exports = {
    '.': { types: './lib/index.d.ts', default: './lib/index.js' },
    './client': { types: './lib/client/index.d.ts', default: './lib/client/index.js' },
  };
  const manifest = {
    ...{ name, version, description, license, type, engines: { node: NODE } },
    ...{ types: exports['.'].types, exports, bin: { rowkey: './local/commands/rowkey.js' } },
    ...{ files: ['lib', 'local', 'docs'], dependencies: { ...dependencies, ...commandLine }, peerDependencies },
  };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const pages = ['README.md', ...(await Array.fromAsync(glob('docs/*.md', { cwd: ROOT })))];
  for (const page of pages) {
    const text = await readFile(join(ROOT, page), 'utf8');
    await writeFile(join(folder, page), withoutOtherLinks(text, page, [...pages, 'LICENSE']));
  }
}

/** Messages of the package name its own command line instead of npm scripts. */
async function nameThePackage(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const changed = text.replace('const IS_PACKAGE = false', 'const IS_PACKAGE = true');
  if (changed === text) throw new Error(`${file} does not say IS_PACKAGE.`);
  await writeFile(file, changed);
}

/** Replaces links to files that are not in the package by their text. */
function withoutOtherLinks(text: string, page: string, packed: readonly string[]): string {
  return text.replaceAll(/\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)/g, (link, label: string, target: string) =>
    packed.includes(posix.join(dirname(page), target)) ? link : label,
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await buildLibrary();
