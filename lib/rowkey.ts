import type { Authenticate } from './access/token.ts';
import type { Entities } from './api/entity-types.ts';
import type { Model } from './define/define-model.ts';
import { createHandler, type Handle, type Handler, type HandlerOptions } from './http/handler.ts';
import { rootOf } from './http/route.ts';
import { createRuntime, type Runtime } from './runtime.ts';
import type { RowkeySettings, UnusableSettings } from './settings.ts';
import { createStore, type Store } from './store/store.ts';

/** A model whose entities are known by name. */
type AnyModel<All extends Entities> = Omit<Model, 'entities'> & { readonly entities: All };

export type RowkeyOptions<All extends Entities> = {
  readonly model: AnyModel<All>;
  /**
   * The first segment of all routes, below `/api`: lower-case letters, digits and hyphens. An instance that shares a Functions
   * app with another one needs it. Default: none.
   */
  readonly path?: string | undefined;
} & (RowkeySettings | UnusableSettings);

/** One model on one storage account. A process may have several. */
export interface Rowkey<All extends Entities = Entities> {
  readonly model: AnyModel<All>;
  /** Reads and writes the entities of the model in process, typed by their declarations and without access rules. */
  readonly store: Store<All>;
  /** Returns the caller whose token the `Authorization` header carries. Throws `unauthenticated`. */
  readonly authenticate: Authenticate;
  /**
   * Creates the handler of your own HTTP function. The caller needs one of the roles, and errors are returned as problems,
   * like those of the model's routes. Throws a plain error for a role that the model does not have.
   *
   * @example
   * app.http('find', {
   *   route: 'api/find/{plate}',
   *   authLevel: 'anonymous',
   *   handler: rowkey.handler({ roles: ['reader'] }, async ({ params }) => {
   *     const found = await rowkey.store.vehicles.by.plate({ plate: params.plate ?? '' });
   *     return found ? { jsonBody: found } : { status: 404 };
   *   }),
   * });
   */
  handler(options: HandlerOptions, handle: Handle): Handler;
  /**
   * Creates the missing tables, queues and containers of the model, for development and tests. In Azure, the deployment
   * template creates them, because the app's identity may not.
   */
  provision(): Promise<void>;
  /**
   * For `registerFunctions`.
   * @internal
   */
  readonly runtime: Runtime;
}

/**
 * Creates an instance. Everything is opened at first use, so this cannot fail: with invalid settings, every request and
 * every call of the store throws `wrong-setting`.
 *
 * @example
 * const rowkey = createRowkey({ model, ...fromEnvironment(process.env) });
 */
export function createRowkey<All extends Entities>({ model, ...settings }: RowkeyOptions<All>): Rowkey<All> {
  const runtime = createRuntime(model, settings);
  return {
    model,
    store: createStore<All>(model.list, { engine: () => runtime.readyEngine(console), record: runtime.record }),
    authenticate: async (authorization) => runtime.app().authenticate(authorization),
    handler(options, handle) {
      const unknown = options.roles?.find((role) => !model.roles.includes(role));
      if (unknown !== undefined)
        throw new Error(`"${unknown}" is not a role of the model. Use one of ${model.roles.join(', ')}.`);
      return createHandler(runtime.app, { ...options, root: rootOf(runtime.path) }, handle);
    },
    provision: runtime.provision,
    runtime,
  };
}
