import { app } from '@azure/functions';
import { readyEngine } from '../lib/app.ts';
import { deployment } from '../lib/model/deployment.ts';
import { collectOrphans } from '../lib/operations/collect-orphans.ts';

/** Daily, at 01:20 UTC: deletes blobs that no row refers to any more. */
app.timer('collect-orphans', {
  schedule: '0 20 1 * * *',
  handler: async (_timer, context) => {
    const engine = await readyEngine(context);
    const { looked, deleted } = await collectOrphans(engine, deployment);
    context.log(`${deleted} of ${looked} blobs deleted.`);
  },
});
