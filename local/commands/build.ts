import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeRoutes } from '../../lib/http/openapi.ts';
import { createRoutes } from '../../lib/http/routes.ts';
import { model } from '../../model/model.ts';
import { buildApp, compileApp } from '../package/build-app.ts';
import { buildConsole } from '../package/build-console.ts';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));

/** Builds the only app of the repository, functions/ as dist/app.js, and its console. */
export async function build(): Promise<void> {
  // Routes build their schemas when they are described: a schema that cannot be built fails here and not at a request.
  describeRoutes(createRoutes(model));
  await buildApp({ folder: DIST });
  const failure = await compileApp(DIST);
  if (failure !== undefined)
    console.warn(`Built without compiled code, because the app cannot be loaded here. ${failure}`);
  await buildConsole();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await build();
