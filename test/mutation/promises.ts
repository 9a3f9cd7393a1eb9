import type { Cut } from '../model/rules.ts';
import { ACCESS } from './promises/access.ts';
import { API } from './promises/api.ts';
import { BASE } from './promises/base.ts';
import { CLIENT } from './promises/client.ts';
import { DEFINE } from './promises/define.ts';
import { ENGINE } from './promises/engine.ts';
import { ENGINE_CONSUME } from './promises/engine-consume.ts';
import { ENGINE_READ } from './promises/engine-read.ts';
import { ENGINE_RECONCILE } from './promises/engine-reconcile.ts';
import { ENGINE_TRANSFER } from './promises/engine-transfer.ts';
import { ENGINE_WRITE } from './promises/engine-write.ts';
import { FEATURES } from './promises/features.ts';
import { HTTP } from './promises/http.ts';
import { LOCAL } from './promises/local.ts';
import { OPERATIONS } from './promises/operations.ts';
import { SETTINGS } from './promises/settings.ts';
import { STORAGE } from './promises/storage.ts';

/**
 * Promises of the documents: the code without each one, and the test that then fails. A room of the code has a file of its own in
 * test/mutation/promises. `npm run promises` proves them, with the samples and the storage of `npm test`.
 */

export const PROMISES: readonly Cut[] = [
  ...ACCESS,
  ...API,
  ...BASE,
  ...CLIENT,
  ...DEFINE,
  ...ENGINE,
  ...ENGINE_CONSUME,
  ...ENGINE_READ,
  ...ENGINE_RECONCILE,
  ...ENGINE_TRANSFER,
  ...ENGINE_WRITE,
  ...FEATURES,
  ...HTTP,
  ...LOCAL,
  ...OPERATIONS,
  ...SETTINGS,
  ...STORAGE,
];
