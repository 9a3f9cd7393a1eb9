import { app } from '@azure/functions';
import { readyEngine } from '../lib/app.ts';
import { deployment } from '../lib/model/deployment.ts';
import { canVerify } from '../lib/operations/verify.ts';
import { continueVerifyRun } from '../lib/operations/verify-run.ts';

/** A run of the function is cut off after ten minutes, and another one goes on. */
const WORK_FOR_MS = 4 * 60_000;
const TRANSACTIONS_A_SECOND = 100;

/** Hourly: begins the audit of the week, or goes on with it. */
app.timer('verify', {
  schedule: '0 40 * * * *',
  handler: async (_timer, context) => {
    const engine = await readyEngine(context);
    const until = Date.now() + WORK_FOR_MS;
    for (const entity of deployment.filter(canVerify)) {
      const run = await continueVerifyRun(engine, entity, { until, rate: TRANSACTIONS_A_SECOND });
      const report = `${entity.name}: ${run.looked} rows looked at, ${run.found} do not agree.`;
      if (run.found > 0) context.error(report);
      else context.log(report);
    }
  },
});
