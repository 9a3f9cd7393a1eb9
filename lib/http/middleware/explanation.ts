import { collectRules } from '../../access/limit.ts';
import { describeApplied } from '../../access/why.ts';
import { explain } from '../../storage/explain.ts';
import { EXPLANATION_TYPE, type Middleware } from '../route.ts';

/** With `explain=true`, returns the storage calls that the request would make, in place of its effect. Operators see the rules on rows that it applied. */
export const explanation: Middleware = (_route, next) => async (exchange) => {
  if (!exchange.isExplanation) return next(exchange);
  const { result: steps, rules } = await collectRules(() => explain(() => next(exchange)));
  // Concurrent requests share an append to the audit log, so it is not a cost of this one.
  const own = steps.filter((step) => !('write' in step && step.write === 'blob' && step.does === 'append'));
  const isOperator = exchange.caller.roles.includes(exchange.open().operatorRole);
  return {
    status: 200,
    body: { steps, transactions: own.length, ...(isOperator ? { rules: rules.map(describeApplied) } : {}) },
    headers: { 'cache-control': 'no-store', 'content-type': EXPLANATION_TYPE },
  };
};
