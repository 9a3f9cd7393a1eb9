import { provideFunctionsCore, runHooks } from './functions-core.ts';
import { readHostSettings } from './host-settings.ts';
import { startHttpListener } from './http-listener.ts';
import { restartApp } from './invoke.ts';
import { loadApp, selectByTrigger } from './load-app.ts';
import { startQueueListener } from './queue-listener.ts';
import { requireStartRules } from './start-rules.ts';
import { startTimerListener, type TimerListener } from './timer-listener.ts';
import { openTimerState } from './timer-state.ts';

export interface HostOptions {
  /** The folder of the app. The app reads its settings from the environment while it is loaded. */
  readonly folder: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly origins: readonly string[];
  readonly state: string | undefined;
  /** The key of the admin route. */
  readonly key: string;
}

/** An app that is served by this process. */
export interface Host {
  readonly port: number;
  /** Fails the calls in progress and loads the app again. */
  reload(): Promise<void>;
  /** Starts no more calls, and resolves when the calls in progress have finished. */
  stopListeners(): Promise<void>;
  /** Runs the hooks of the app for its end. */
  terminate(): Promise<void>;
}

/** Loads an app and serves it. A process has one host at a time. */
export async function startHost({ folder, port, origins, state, key }: HostOptions): Promise<Host> {
  const settings = await readHostSettings(folder);
  // The library imports the core once, so the hook must exist before the app imports the library.
  provideFunctionsCore();
  let hookData = {};
  const load = async () => {
    const functions = await loadApp(folder);
    requireStartRules(functions, settings);
    hookData = {};
    await runHooks('appStart', { hookData });
    return functions;
  };
  const functions = await load();

  // Listen first: if the port is in use, the host must not receive messages or run timers.
  const timers: TimerListener[] = [];
  const enabled = functions.filter(({ isDisabled }) => !isDisabled);
  const http = await startHttpListener(selectByTrigger(enabled, 'httpTrigger'), {
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
  const queues = selectByTrigger(enabled, 'queueTrigger').map((target) => startQueueListener(target, settings.queues));
  const timerState = openTimerState(state);
  timers.push(...selectByTrigger(functions, 'timerTrigger').map((target) => startTimerListener(target, timerState)));
  return {
    port: http.port,
    reload: () => restartApp(load),
    async stopListeners() {
      await Promise.all([http, ...queues, ...timers].map((listener) => listener.stop()));
    },
    terminate: () => runHooks('appTerminate', { hookData }),
  };
}
