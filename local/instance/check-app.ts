import type { Model } from '../../lib/define/define-model.ts';
import { closedIndexReasons } from '../../lib/define/places/closed-index.ts';
import { describeRoutes } from '../../lib/http/openapi.ts';
import { createRoutes } from '../../lib/http/routes.ts';
import { provideFunctionsCore } from '../host/functions-core.ts';
import { readHostSettings } from '../host/host-settings.ts';
import { loadApp } from '../host/load-app.ts';
import { requireStartRules } from '../host/start-rules.ts';
import { loadModel } from './load-local-app.ts';

export interface CheckedApp {
  readonly model: Model;
  readonly functions: number;
  /** What works and is probably not meant, such as an index that no role may list. */
  readonly warnings: readonly string[];
}

/**
 * Loads an app into this process as the functions host does, without storage and without settings. Throws what the model, its routes,
 * host.json or the host refuse. A process can check one app once, as modules stay loaded.
 */
export async function checkApp(folder: string): Promise<CheckedApp> {
  const settings = await readHostSettings(folder);
  // The library imports the core once, so the hook must exist before the app imports the library.
  provideFunctionsCore();
  const functions = await loadApp(folder);
  requireStartRules(functions, settings);
  const model = await loadModel(folder);
  describeRoutes(createRoutes(model));
  return { model, functions: functions.length, warnings: closedIndexReasons(model.list) };
}
