import { cp, glob, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { z } from 'zod';
import { CONSOLE_FOLDER } from '../../lib/register-functions.ts';
import { inspectApp } from '../instance/inspect-app.ts';
import { listMainFiles } from '../instance/load-local-app.ts';
import { needTool } from '../instance/need-tool.ts';

const OUT = 'out';

/** Creates the command that builds the files which Azure runs. */
export function createPackageCommand(): Command {
  return new Command()
    .description('Builds an app and everything that it imports into a folder which Azure runs as it is.')
    .argument('[folder]', 'the folder of the app', '.')
    .option('--out <folder>', `the folder to write; default: ${OUT} in the folder of the app`)
    .showHelpAfterError()
    .action(async (folder: string, { out = join(folder, OUT) }: { readonly out?: string }) => {
      await packageOwnApp(folder, out);
      const files = await listFiles(out);
      const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
      const megabytes = sizes.reduce((sum, size) => sum + size, 0) / 1_000_000;
      console.log(`${out} has ${files.length} files, ${megabytes.toFixed(1)} MB.`);
    });
}

/** Replaces a folder with the app as Azure runs it: bundled, with the console, host.json and a package.json without dependencies. */
async function packageOwnApp(folder: string, out: string): Promise<void> {
  const { problem } = await inspectApp(folder);
  if (problem !== undefined) throw new Error(problem);
  const { buildApp, compileApp } = await needTool('rolldown', () => import('../package/build-app.ts'));
  const dist = join(out, 'dist');
  await rm(out, { recursive: true, force: true });
  await mkdir(dist, { recursive: true });
  const files = (await listMainFiles(folder)).map((file) => resolve(folder, file));
  await buildApp({ files, root: resolve(folder), folder: resolve(dist) });
  const failure = await compileApp(resolve(dist));
  if (failure !== undefined) console.warn(`Built without compiled code, because the app cannot be loaded. ${failure}`);
  // Azure runs no debugger.
  for await (const map of glob('**/*.map', { cwd: dist })) await rm(join(dist, map));
  await cp(CONSOLE_FOLDER, join(dist, 'console'), { recursive: true });
  await cp(join(folder, 'host.json'), join(out, 'host.json'));
  const { name, version } = Manifest.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
  const manifest = { name, version, private: true, type: 'module', main: 'dist/app.js' };
  await writeFile(join(out, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

const Manifest = z.object({ name: z.string().optional(), version: z.string().optional() });

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}
