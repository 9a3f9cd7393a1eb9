import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildLibrary } from '../local/commands/build-library.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

export interface InstalledPackage {
  /** A copy of test/adopter: an app in another folder with its own model and HTTP function. */
  readonly folder: string;
  /** The folder of the package in the app. */
  readonly installed: string;
  /** The paths of the files in the tarball. */
  readonly packed: readonly string[];
  remove(): Promise<void>;
}

/** Packs the package and installs it in an app, without a registry: what it declares, `more`, and nothing else is placed where npm would install it. */
export async function installPackage(more: readonly string[] = []): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-adopter-'));
  const modules = join(folder, 'node_modules');
  const link = async (name: string) => {
    const path = join(modules, name);
    await mkdir(dirname(path), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), path, 'junction');
  };
  await cp(join(ROOT, 'test', 'adopter'), folder, { recursive: true });
  const library = join(folder, 'library');
  await buildLibrary(library);
  const { stdout } = await run('npm', ['pack', library, '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(stdout);
  const installed = join(modules, 'rowkey');
  await mkdir(installed, { recursive: true });
  await run('tar', ['xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  await rm(library, { recursive: true });
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  const { dependencies, peerDependencies, peerDependenciesMeta, bin } = manifest;
  const required = Object.keys({ ...dependencies, ...peerDependencies }).filter(
    (name) => !peerDependenciesMeta[name]?.optional,
  );
  for (const name of new Set([...required, '@types/node', ...more])) await link(name);
  await mkdir(join(modules, '.bin'), { recursive: true });
  await chmod(join(installed, bin.rowkey), 0o755);
  await symlink(join(installed, bin.rowkey), join(modules, '.bin', 'rowkey'));
  return {
    folder,
    installed,
    packed: files.map(({ path }: { path: string }) => path),
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}
