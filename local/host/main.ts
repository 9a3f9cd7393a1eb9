import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startHost } from './host.ts';
import { formatError, writeLog } from './log.ts';

const STOP_WITHIN_MS = 10_000;

/**
 * A small functions host: `node local/host/main.ts --app FOLDER --port N` (0 for any free port), with `--cors ORIGINS`
 * if pages of other origins may call it, and `--state FILE` to make up for missed timer runs. Once the host serves, it prints
 * `{"ready":true,"port":N}`, then one line for each log entry. After SIGTERM or SIGINT it finishes the calls in progress.
 */
async function main() {
  const { folder, port, origins, state } = readArguments();
  const key = takeKey();
  // Stack traces then show the lines of the sources, if the app has a source map.
  process.setSourceMapsEnabled(true);
  const host = await startHost({ folder, port, origins, state, key });
  // Whoever started the host and read its log is gone. As an unhandled error, a failed write would be logged, and fail again.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => process.exit(1));
  for (const event of ['unhandledRejection', 'uncaughtException'] as const)
    process.on(event, (error: unknown) => {
      writeLog('error', 'host', `reloading the app after an unhandled error: ${formatError(error)}`);
      host.reload().catch(fail);
    });

  let isStopping = false;
  async function stop() {
    if (isStopping) return;
    isStopping = true;
    const finished = await Promise.race([host.stopListeners().then(() => true), sleep(STOP_WITHIN_MS, false)]);
    if (!finished) writeLog('warning', 'host', `stopped after ${STOP_WITHIN_MS / 1000} s with calls still in progress`);
    await host.terminate().catch((error) => writeLog('error', 'host', formatError(error)));
    process.exit(0);
  }
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.stdout.write(`${JSON.stringify({ ready: true, port: host.port })}\n`);
}

/** Without a configured key, a random one locks the admin route. The variable is deleted so that the app cannot read it. */
function takeKey(): string {
  const { ROWKEY_HOST_KEY: key = randomUUID() } = process.env;
  delete process.env.ROWKEY_HOST_KEY;
  return key;
}

function readArguments() {
  const options = {
    app: { type: 'string' },
    port: { type: 'string' },
    cors: { type: 'string' },
    state: { type: 'string' },
  } as const;
  const { app, port = '', cors, state } = parseArgs({ options }).values;
  if (!app || !/^\d{1,5}$/.test(port)) throw new Error('Start the host with --app FOLDER --port NUMBER.');
  return { folder: resolve(app), port: Number(port), origins: cors?.split(',') ?? [], state };
}

function fail(error: unknown): never {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

main().catch(fail);
