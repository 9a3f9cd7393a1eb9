import { requireWholeReader } from '../../access/rule.ts';
import { withArchives } from '../../define/declaration/entity.ts';
import { explain } from '../../storage/explain.ts';
import { EXPLANATION_TYPE, isRead, type Middleware } from '../route.ts';

/** With `explain=true`, returns the storage calls that the request would make, in place of its effect. */
export const explanation: Middleware = (route, next) => async (exchange) => {
  const { app, caller, isExplanation } = exchange;
  if (!isExplanation) return next(exchange);
  // The steps of a write and of a check name rows, whose keys are fields of all entities in the table.
  if (!isRead(route))
    for (const entity of withArchives(app().entities))
      if (entity.table === route.entity?.table) requireWholeReader(entity, caller);
  const steps = await explain(() => next(exchange));
  // Concurrent requests share an append to the audit log, so it is not a cost of this one.
  const own = steps.filter((step) => !('write' in step && step.write === 'blob' && step.does === 'append'));
  const headers = { 'cache-control': 'no-store', 'content-type': EXPLANATION_TYPE };
  return { status: 200, body: { steps, transactions: own.length }, headers };
};
