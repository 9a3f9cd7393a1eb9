import { fileURLToPath } from 'node:url';
import { model } from '../../model/model.ts';
import type { LocalApp } from './local-app.ts';

/** The app of this repository, which the commands run and call. Tests replace this module. */
export const deployedApp: LocalApp = {
  model,
  folder: fileURLToPath(new URL('../..', import.meta.url)),
  packs: fileURLToPath(new URL('../../examples', import.meta.url)),
};
