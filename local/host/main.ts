import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { provideFunctionsCore, runHooks } from './functions-core.ts';
import { readHostSettings } from './host-settings.ts';
import { startHttpListener } from './http-listener.ts';
import { restartApp } from './invoke.ts';
import { loadApp, selectByTrigger } from './load-app.ts';
import { formatError, writeLog } from './log.ts';
import { startQueueListener } from './queue-listener.ts';
import { startTimerListener, type TimerListener } from './timer-listener.ts';
import { openTimerState } from './timer-state.ts';

const STOP_WITHIN_MS = 10_000;

/**
 * A small functions host: `node local/host/main.ts --app FOLDER --port N` (0 for any free port), with `--cors ORIGINS`
 * where pages of other origins may call it, and `--state FILE` where a run of a timer that was missed is to be made up for. Once it serves it prints `{"ready":true,"port":N}`, then one line for each
 * log entry. SIGTERM or SIGINT ends it when what runs is done.
 */
async function main() {
  const { folder, port, origins, state } = readArguments();
  const key = takeKey();
  const settings = await readHostSettings(folder);
  // A stack trace tells the lines of the sources, where the app comes with a map.
  process.setSourceMapsEnabled(true);
  // The core must be there before the app's first import of the library, which asks for it once.
  provideFunctionsCore();
  let hookData = {};
  const load = async () => {
    const functions = await loadApp(folder);
    hookData = {};
    await runHooks('appStart', { hookData });
    return functions;
  };
  const functions = await load();

  // Listen first: if the port is in use, no message may have been received and no timer run.
  const timers: TimerListener[] = [];
  const http = await startHttpListener(selectByTrigger(functions, 'httpTrigger'), {
    port,
    routePrefix: settings.http.routePrefix,
    origins,
    key,
    runTimer(name) {
      const timer = timers.find((candidate) => candidate.name.toLowerCase() === name.toLowerCase());
      timer?.run();
      return timer !== undefined;
    },
  });
  const queues = selectByTrigger(functions, 'queueTrigger').map((target) =>
    startQueueListener(target, settings.queues),
  );
  const timerState = openTimerState(state);
  timers.push(...selectByTrigger(functions, 'timerTrigger').map((target) => startTimerListener(target, timerState)));
  for (const event of ['unhandledRejection', 'uncaughtException'] as const)
    process.on(event, (error: unknown) => {
      writeLog('error', 'host', `an unhandled error ends the app, which is loaded anew: ${formatError(error)}`);
      restartApp(load).catch(fail);
    });

  let stopping = false;
  async function stop() {
    if (stopping) return;
    stopping = true;
    const done = Promise.all([http, ...queues, ...timers].map((listener) => listener.stop())).then(() => true);
    const finished = await Promise.race([done, sleep(STOP_WITHIN_MS, false)]);
    if (!finished) writeLog('warning', 'host', `left what still ran after ${STOP_WITHIN_MS / 1000} s`);
    await runHooks('appTerminate', { hookData }).catch((error) => writeLog('error', 'host', formatError(error)));
    process.exit(0);
  }
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.stdout.write(`${JSON.stringify({ ready: true, port: http.port })}\n`);
}

/** Without a key of its own the host has one that nobody knows. The app is not shown it. */
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
