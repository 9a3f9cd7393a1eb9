import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { compressFiles } from './compress-files.ts';

const CONFIG = fileURLToPath(new URL('../../web/vite.config.ts', import.meta.url));

const BUILT = fileURLToPath(new URL('../../dist/console', import.meta.url));

/** Builds the console from `web/` into `dist/console`, or into another folder, with compressed copies of its files. */
export async function buildConsole(folder = BUILT): Promise<void> {
  await build({ configFile: CONFIG, build: { outDir: folder } });
  await compressFiles(folder);
}
