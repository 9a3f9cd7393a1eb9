import { fileURLToPath } from 'node:url';
import type { Model } from '../../lib/define/define-model.ts';
import { model } from '../../lib/model/model.ts';

/** A built app and the model that it serves. */
export interface LocalApp {
  readonly model: Model;
  /** The folder of `host.json`, `package.json` and the built `main`. */
  readonly folder: string;
  /** The folder of the packs, each in its own folder. Undefined for an app without packs. */
  readonly packs: string | undefined;
}

/** The app of this repository, which the commands run and call. Tests replace this module. */
export const deployedApp: LocalApp = {
  model,
  folder: fileURLToPath(new URL('../..', import.meta.url)),
  packs: fileURLToPath(new URL('../../lib/model', import.meta.url)),
};
