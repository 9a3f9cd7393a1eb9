import { copyFile, cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { compressFiles } from './compress-files.ts';

const CONFIG = fileURLToPath(new URL('../../web/vite.config.ts', import.meta.url));

const BUILT = fileURLToPath(new URL('../../dist/console', import.meta.url));

const DOCS = fileURLToPath(new URL('../../web/docs', import.meta.url));
const RENDERER = fileURLToPath(new URL('.', import.meta.resolve('swagger-ui-dist/swagger-ui.css')));

/** Builds the console from `web/` into `dist/console`, or into another folder, with compressed copies of its files. Its folder
 * `docs` has the page that renders the OpenAPI description. */
export async function buildConsole(folder = BUILT): Promise<void> {
  // Vite builds for development in a process of tests otherwise, so that they would measure another bundle than the deployed one.
  process.env.NODE_ENV = 'production';
  await build({ configFile: CONFIG, build: { outDir: folder } });
  const docs = join(folder, 'docs');
  await cp(DOCS, docs, { recursive: true });
  for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css', 'LICENSE', 'NOTICE'])
    await copyFile(join(RENDERER, file), join(docs, file));
  await compressFiles(folder);
}
