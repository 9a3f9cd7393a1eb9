import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { SYSTEM_TABLE } from '../patterns/continuation.ts';
import { readRow } from '../storage/rows.ts';
import type { Answer, Call, Route } from './route.ts';

const ANSWER_WITHIN_MS = 3_000;
const Health = z.object({ status: z.enum(['ok', 'degraded']), storage: z.enum(['ok', 'unavailable']) });

/** That there is an answer at all is the liveness; what it says of storage comes from one point query. */
export const healthRoute: Route = {
  name: 'health',
  method: 'GET',
  path: 'health',
  roles: undefined,
  summary: 'Whether the service runs and storage answers',
  success: { status: 200, description: 'All is well; 503 where storage does not answer', body: Health },
  handle: health,
};

async function health({ app }: Call): Promise<Answer> {
  const probe = readRow(app.engine.storage, { table: SYSTEM_TABLE, partition: 'health', row: 'probe' });
  const storage = await Promise.race([
    probe.then(
      () => 'ok' as const,
      () => 'unavailable' as const,
    ),
    sleep(ANSWER_WITHIN_MS, 'unavailable' as const, { ref: false }),
  ]);
  const body: z.infer<typeof Health> = { status: storage === 'ok' ? 'ok' : 'degraded', storage };
  return { status: storage === 'ok' ? 200 : 503, body, headers: { 'cache-control': 'no-store' } };
}
