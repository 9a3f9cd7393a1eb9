import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../../base/engine-names.ts';
import { hasCode } from '../../base/errors.ts';
import { describeMissing } from '../../storage/errors.ts';
import { readRow } from '../../storage/rows.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';

const TIMEOUT_MS = 3_000;
const Health = z.object({
  status: z.enum(['ok', 'degraded']),
  storage: z.enum(['ok', 'unavailable', 'unknown']),
  declaration: z.enum(['ok', 'refused', 'unknown']),
  settings: z.enum(['ok', 'refused']),
  resources: z.enum(['ok', 'missing', 'unknown']),
  accounts: z
    .array(z.object({ name: z.string(), storage: z.enum(['ok', 'unavailable']) }))
    .optional()
    .describe('Each storage account, if there are several'),
  hint: z.string().optional(),
});
type Health = z.infer<typeof Health>;

const MISCONFIGURED: Health = {
  status: 'degraded',
  storage: 'unknown',
  declaration: 'unknown',
  settings: 'refused',
  resources: 'unknown',
  hint: 'A setting is wrong, so the app serves nothing. The log of the app names the setting and what is accepted.',
};

/** Any response shows that the app runs. The state of storage comes from a point query of each account, and from listings until nothing is missing. */
export const healthRoute: Route = {
  name: 'health',
  method: 'GET',
  path: 'health',
  kind: 'read',
  roles: undefined,
  summary: 'Check that the app runs, storage responds, its tables exist, and the model matches what is stored',
  success: {
    status: 200,
    description: 'Serves. `status` is `degraded` if some of several storage accounts do not respond',
    body: () => Health,
  },
  others: {
    500: {
      description: 'Misconfigured: a setting is wrong, or the model does not match what is stored',
      body: () => Health,
    },
    503: { description: 'Does not serve; the body says why', body: () => Health },
  },
  whenMisconfigured: { status: 500, body: MISCONFIGURED, headers: { 'cache-control': 'no-store' } },
  handle: checkHealth,
};

async function checkHealth(context: RequestContext): Promise<RouteResult> {
  const { storage: all } = context.app.engine;
  const [states, declaration, missing] = await Promise.all([
    Promise.all(accountsOf(all).map(probe)),
    withTimeout<Health['declaration']>(checkDeclaration(context), 'unknown'),
    withTimeout(
      context.app.findMissing().catch(() => undefined),
      undefined,
    ),
  ]);
  const storage = states.every((state) => state === 'ok') ? 'ok' : 'unavailable';
  const accounts = all.accounts?.list.map(({ name }, index) => ({ name, storage: states[index] ?? 'unavailable' }));
  const resources = missing === undefined ? 'unknown' : missing.length > 0 ? 'missing' : 'ok';
  // A load balancer that took an instance out of service for an account that is away would take all, and the other accounts with them.
  const isServing = states.includes('ok') && declaration === 'ok' && resources !== 'missing';
  const status = isServing && storage === 'ok' ? 'ok' : 'degraded';
  const hint = missing?.length ? { hint: describeMissing(missing) } : {};
  const body: Health = {
    status,
    storage,
    declaration,
    settings: 'ok',
    resources,
    ...(accounts ? { accounts } : {}),
    ...hint,
  };
  return {
    status: isServing ? 200 : declaration === 'refused' ? 500 : 503,
    body,
    headers: { 'cache-control': 'no-store' },
  };
}

/** One point query of an account. The others keep serving while one is away. */
function probe(account: Storage): Promise<'ok' | 'unavailable'> {
  const reading = readRow(account, {
    table: SYSTEM_TABLE,
    partition: SYSTEM_PARTITIONS.health,
    row: SYSTEM_ROWS.probe,
  }).then(
    () => 'ok' as const,
    (error) => (hasCode(error, 'not-provisioned') ? 'ok' : 'unavailable'),
  );
  return withTimeout(reading, 'unavailable');
}

/** While the model is rejected no other route is served, so the health check must show it. */
async function checkDeclaration({ app, log }: RequestContext): Promise<Health['declaration']> {
  try {
    await app.ready(log);
    return 'ok';
  } catch (error) {
    if (!hasCode(error, 'wrong-setting')) return 'unknown';
    log.error(error.message);
    return 'refused';
  }
}

function withTimeout<Result>(work: Promise<Result>, otherwise: Result): Promise<Result> {
  return Promise.race([work, sleep(TIMEOUT_MS, otherwise, { ref: false })]);
}
