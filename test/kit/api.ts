import { getEntity } from '../../lib/api/get.ts';
import { listMine } from '../../lib/api/mine.ts';
import { perform } from '../../lib/api/operation.ts';
import { listRange } from '../../lib/api/reads.ts';
import { eraseAll } from '../../lib/api/user-data.ts';
import { WhyQuestion } from '../../lib/api/why.ts';
import { batch, patch } from '../../lib/api/writes.ts';
import { openSession } from '../../lib/client/sign-in.ts';
import { API, TIMERS, timersOf } from '../../lib/register-functions.ts';
import { createExecute } from '../../lib/store/app-operations.ts';
import { createStore } from '../../lib/store/store.ts';
import { inPattern, nameRequest, traceInvocation } from '../../lib/telemetry/span.ts';

export type { Replacement } from '../../lib/api/entity-types.ts';
export type { Operation } from '../../lib/api/operation.ts';

/** What the API, the store, the client and telemetry do inside. */
export const apiCalls = {
  WhyQuestion,
  batch,
  createExecute,
  createStore,
  getEntity,
  eraseAll,
  listMine,
  listRange,
  inPattern,
  nameRequest,
  openSession,
  patch,
  perform,
  traceInvocation,
} as const;

/** The functions of an app (lib/register-functions.ts). */
export const appFunctions = {
  API,
  TIMERS,
  timersOf,
} as const;
