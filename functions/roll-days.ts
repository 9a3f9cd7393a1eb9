import { app } from '@azure/functions';
import { readyEngine } from '../lib/app.ts';
import { operations } from '../lib/engine/transfer/operation.ts';
import { deployment } from '../lib/model/deployment.ts';
import { rollDays } from '../lib/patterns/high-volume-delete.ts';

/** Daily, at 00:05 UTC: makes tomorrow's tables and drops those of the days that are no longer kept. */
app.timer('roll-days', {
  schedule: '0 5 0 * * *',
  handler: async (_timer, context) => {
    const engine = await readyEngine(context);
    for (const entity of [...deployment, operations].filter(({ perDay }) => perDay)) {
      const { dropped } = await rollDays(engine, entity);
      context.log(`${entity.name}: ${dropped.length} tables dropped.`);
    }
  },
});
