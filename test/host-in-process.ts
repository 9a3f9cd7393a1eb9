import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { ProductOptions } from '../local/instance/start-product.ts';

/** By Node instead of vitest: the app imports the same functions core as the host, and each process of the run loads the host once. */
const nodeRequire = createRequire(import.meta.url);

/** True if `useProduct` runs the host in the process of the test, with storage in memory. `npm run test:all` starts a process for each host. */
export const IS_HOSTED_IN_PROCESS = process.env.STORAGE === 'memory';

/** Starts the built app in this process. The settings are in the environment while the app reads them. */
export const startHostInProcess: NonNullable<ProductOptions['startHost']> = async ({
  app,
  port,
  settings,
  cors = [],
  state,
  log,
}) => {
  const { startHost } = nodeRequire('../local/host/host.ts') as typeof import('../local/host/host.ts');
  const { redirectLog } = nodeRequire('../local/host/log.ts') as typeof import('../local/host/log.ts');
  redirectLog(log);
  const { ROWKEY_HOST_KEY: key = '', ...variables } = settings;
  const former = { ...process.env };
  Object.assign(process.env, { FUNCTIONS_WORKER_RUNTIME: 'node' }, variables);
  const host = await startHost({ folder: app, port, origins: cors, state, key }).finally(() => {
    for (const name of Object.keys(process.env)) if (!(name in former)) delete process.env[name];
    Object.assign(process.env, former);
  });
  const stop = async () => {
    await host.stopListeners();
    await host.terminate();
  };
  return {
    // It does not end by itself.
    process: new EventEmitter(),
    isCoreTools: false,
    url: `http://127.0.0.1:${host.port}`,
    stop,
    kill: () => Promise.reject(new Error('A host in the process of the test cannot be killed.')),
  };
};
