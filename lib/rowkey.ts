import type { Authenticate } from './access/token.ts';
import type { Model } from './define/define-model.ts';
import { createRuntime, type Runtime } from './runtime.ts';
import type { RowkeySettings, UnusableSettings } from './settings.ts';

export type RowkeyOptions = { readonly model: Model } & (RowkeySettings | UnusableSettings);

/** One model on one storage account. A process may have several. */
export interface Rowkey {
  readonly model: Model;
  /** Says who calls a function of the app's own: see `Caller`. Throws `unauthenticated`. */
  readonly authenticate: Authenticate;
  /**
   * Creates the tables, queues and containers of the model that do not exist, for development and tests. In Azure a template
   * does so, since the identity of the app may not.
   */
  provision(): Promise<void>;
  /** What `registerFunctions` works with. */
  readonly runtime: Runtime;
}

/**
 * Makes an instance. Everything is opened at its first use, so this cannot fail: with settings that are not usable, every
 * request and every call of the store fails with `wrong-setting`.
 */
export function createRowkey({ model, ...settings }: RowkeyOptions): Rowkey {
  const runtime = createRuntime(model.list, settings);
  return {
    model,
    authenticate: async (authorization) => runtime.app().authenticate(authorization),
    provision: runtime.provision,
    runtime,
  };
}
