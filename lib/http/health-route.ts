import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { SYSTEM_TABLE } from '../engine/read/continuation.ts';
import { RowkeyError } from '../errors.ts';
import { readRow } from '../storage/rows.ts';
import type { RequestContext, Route, RouteResult } from './route.ts';

const ANSWER_WITHIN_MS = 3_000;
const Health = z.object({
  status: z.enum(['ok', 'degraded']),
  storage: z.enum(['ok', 'unavailable', 'unknown']),
  declaration: z.enum(['ok', 'refused', 'unknown']),
  settings: z.enum(['ok', 'refused']),
  hint: z.string().optional(),
});
type Health = z.infer<typeof Health>;

const REFUSED: Health = {
  status: 'degraded',
  storage: 'unknown',
  declaration: 'unknown',
  settings: 'refused',
  hint: 'A setting is not usable, and nothing is served. The log of the app names the setting and what is accepted.',
};

/** That there is an answer at all is the liveness; what it says of storage comes from one point query. */
export const healthRoute: Route = {
  name: 'health',
  method: 'GET',
  path: 'health',
  roles: undefined,
  summary: 'Whether the service runs, storage answers, and what is declared goes with what is stored',
  success: { status: 200, description: 'All is well', body: Health },
  others: { 503: { description: 'Degraded: the body says where', body: Health } },
  refusal: { status: 503, body: REFUSED, headers: { 'cache-control': 'no-store' } },
  handle: health,
};

async function health(call: RequestContext): Promise<RouteResult> {
  const probe = readRow(call.app.engine.storage, { table: SYSTEM_TABLE, partition: 'health', row: 'probe' });
  const [storage, declaration] = await Promise.all([
    inTime<Health['storage']>(
      probe.then(
        () => 'ok',
        () => 'unavailable',
      ),
      'unavailable',
    ),
    inTime<Health['declaration']>(declarationOf(call), 'unknown'),
  ]);
  const isWell = storage === 'ok' && declaration === 'ok';
  const body: Health = { status: isWell ? 'ok' : 'degraded', storage, declaration, settings: 'ok' };
  return { status: isWell ? 200 : 503, body, headers: { 'cache-control': 'no-store' } };
}

/** Nothing but this route is served, by any process, while it is refused: so that is found as soon as somebody looks. */
async function declarationOf({ app, log }: RequestContext): Promise<Health['declaration']> {
  try {
    await app.ready(log);
    return 'ok';
  } catch (error) {
    if (!(error instanceof RowkeyError && error.code === 'wrong-setting')) return 'unknown';
    log.error(error.message);
    return 'refused';
  }
}

function inTime<Result>(answer: Promise<Result>, otherwise: Result): Promise<Result> {
  return Promise.race([answer, sleep(ANSWER_WITHIN_MS, otherwise, { ref: false })]);
}
