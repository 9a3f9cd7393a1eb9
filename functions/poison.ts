import { app } from '@azure/functions';
import { readyEngine } from '../lib/app.ts';
import { deployment } from '../lib/model/deployment.ts';
import { drainPoison } from '../lib/operations/drain-poison.ts';

/** A run ends before the next one is due. */
const WORK_FOR_MS = 30_000;

/** Every minute: records what the host gave up on, or sends it back. */
app.timer('poison', {
  schedule: '0 * * * * *',
  handler: async (_timer, context) => {
    const until = Date.now() + WORK_FOR_MS;
    await drainPoison({ engine: await readyEngine(context), entities: deployment, log: context }, { until });
  },
});
