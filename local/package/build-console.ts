import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const CONFIG = fileURLToPath(new URL('../../web/vite.config.ts', import.meta.url));

/** Builds the console from `web/` into `dist/console`, or into another folder. */
export async function buildConsole(folder?: string): Promise<void> {
  await build({ configFile: CONFIG, ...(folder === undefined ? {} : { build: { outDir: folder } }) });
}
