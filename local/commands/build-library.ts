import { spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The library needs its own manifest: `npm pack` includes the `main` of a manifest, which is the whole app here. */
export const LIBRARY = join(ROOT, 'dist', 'library');

/** Builds the package that other Functions apps install: JavaScript and declarations of lib/index.ts and what it imports. */
export async function buildLibrary(folder = LIBRARY): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const args = ['--project', join(ROOT, 'tsconfig.build.json'), '--outDir', join(folder, 'lib')];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The library does not compile.\n${stdout}`);
  const { name, version, description, license, type, engines, dependencies, peerDependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  );
  const exports = { '.': { types: './lib/index.d.ts', default: './lib/index.js' } };
  const entry = { types: exports['.'].types, exports, files: ['lib'] };
  const manifest = { name, version, description, license, type, engines, ...entry, dependencies, peerDependencies };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const file of ['README.md', 'LICENSE']) await cp(join(ROOT, file), join(folder, file));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await buildLibrary();
