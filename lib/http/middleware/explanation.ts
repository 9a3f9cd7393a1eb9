import { explain } from '../../storage/explain.ts';
import { EXPLANATION_TYPE, type Middleware } from '../route.ts';

/** With `explain=true`, returns the storage calls that the request would make, in place of its effect. */
export const explanation: Middleware = (_route, next) => async (exchange) => {
  if (!exchange.isExplanation) return next(exchange);
  const steps = await explain(() => next(exchange));
  // Concurrent requests share an append to the audit log, so it is not a cost of this one.
  const own = steps.filter((step) => !('write' in step && step.write === 'blob' && step.does === 'append'));
  return {
    status: 200,
    body: { steps, transactions: own.length },
    headers: { 'cache-control': 'no-store', 'content-type': EXPLANATION_TYPE },
  };
};
