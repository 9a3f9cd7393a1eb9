import type { Model } from '../../lib/define/define-model.ts';

/** A built app and the model that it serves. */
export interface LocalApp {
  readonly model: Model;
  /** The folder of `host.json`, `package.json` and the built `main`. */
  readonly folder: string;
  /** The folder of the packs, each in its own folder. Undefined for an app without packs. */
  readonly packs: string | undefined;
}
