import type { Cost, Measured } from '../api/cost.ts';
import type { ImportProgress } from './import-rows.ts';

/** An import since its start. */
export interface ImportRun {
  readonly entity: string;
  /** The name of the file. */
  readonly name: string;
  readonly progress?: ImportProgress;
  readonly error?: unknown;
  readonly isDone?: boolean;
  /** The costs of the requests, once the run is done. */
  readonly costs?: readonly Cost[];
}

type Work = (signal: AbortSignal, onProgress: (progress: ImportProgress) => void) => Promise<Measured<ImportProgress>>;

/** The imports of a session, the last one of each entity. An import continues when the user leaves its page, and ends when the user closes the tab. */
export interface ImportRuns {
  list(): readonly ImportRun[];
  start(entity: string, name: string, work: Work): void;
  cancel(entity: string, reason: string): void;
  /** Calls `listener` after each change. Returns how to stop. */
  subscribe(listener: () => void): () => void;
}

export function isRunning({ isDone, error }: ImportRun): boolean {
  return !isDone && error === undefined;
}

export function createImportRuns(): ImportRuns {
  const runs = new Map<string, ImportRun>();
  const controllers = new Map<string, AbortController>();
  const listeners = new Set<() => void>();
  const askBeforeUnload = (event: Event) => event.preventDefault();

  function set(run: ImportRun): void {
    runs.set(run.entity, run);
    if ([...runs.values()].some(isRunning)) window.addEventListener('beforeunload', askBeforeUnload);
    else window.removeEventListener('beforeunload', askBeforeUnload);
    for (const listener of listeners) listener();
  }

  return {
    list: () => [...runs.values()],
    start(entity, name, work) {
      const controller = new AbortController();
      controllers.set(entity, controller);
      let run: ImportRun = { entity, name };
      const change = (part: Partial<ImportRun>) => {
        run = { ...run, ...part };
        set(run);
      };
      change({});
      work(controller.signal, (progress) => change({ progress })).then(
        ({ result, costs }) => change({ progress: result, costs, isDone: true }),
        (error: unknown) => change({ error }),
      );
    },
    cancel: (entity, reason) => controllers.get(entity)?.abort(new Error(reason)),
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
