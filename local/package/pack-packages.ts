import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildCreate } from '../commands/build-create.ts';
import { buildLibrary } from '../commands/build-library.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What npm publishes, by the folder that has the manifest. */
const PACKAGES = [
  { folder: join(ROOT, 'dist', 'library'), build: buildLibrary },
  { folder: join(ROOT, 'dist', 'create'), build: buildCreate },
];

export interface Packed {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
  readonly tarball: string;
  readonly bytes: number;
  readonly unpackedBytes: number;
  readonly files: number;
}

/** Builds each package that npm publishes, and packs it into `dist/packages`. */
export async function packPackages(): Promise<readonly Packed[]> {
  const packages = join(ROOT, 'dist', 'packages');
  await rm(packages, { recursive: true, force: true });
  await mkdir(packages, { recursive: true });
  const packed: Packed[] = [];
  for (const { folder, build } of PACKAGES) {
    await build(folder);
    const { stdout } = await promisify(execFile)('npm', ['pack', folder, '--json', '--pack-destination', packages]);
    const [{ name, version, filename, size: bytes, unpackedSize: unpackedBytes, entryCount: files }] =
      JSON.parse(stdout);
    packed.push({ name, version, folder, tarball: join(packages, filename), bytes, unpackedBytes, files });
  }
  return packed;
}
