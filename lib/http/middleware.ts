import { collectRules } from '../access/limit.ts';
import { describeApplied } from '../access/why.ts';
import { RowkeyError } from '../base/errors.ts';
import { collectChanges } from '../engine/note-change.ts';
import { explain, isExplaining } from '../storage/explain.ts';
import { withDeferredAppends } from '../storage/row-journal.ts';
import { findCaller } from './find-caller.ts';
import { checkQuery } from './query.ts';
import { EXPLANATION_TYPE, type Middleware } from './route.ts';

/** While a setting is wrong, a route for probes has a response of its own: the start has logged the error. */
const misconfigured: Middleware = ({ whenMisconfigured }, next) => {
  if (!whenMisconfigured) return next;
  return (exchange) => {
    try {
      exchange.open();
    } catch (error) {
      if (error instanceof RowkeyError && error.code === 'wrong-setting') return Promise.resolve(whenMisconfigured);
      throw error;
    }
    return next(exchange);
  };
};

/** Finds out who calls. What the caller may do is decided by the operation of the route. */
const authentication: Middleware = ({ roles }, next) => {
  if (!roles) return next;
  return async (exchange) => {
    return next({ ...exchange, caller: await findCaller(exchange.open(), exchange.request.headers) });
  };
};

/** Rejects unknown parameters of a public route. Those of another route are checked once its caller is admitted. */
const parameters: Middleware = (route, next) => {
  if (route.roles) return next;
  return async (exchange) => {
    if (exchange.query.size > 0) checkQuery({ ...exchange, route, app: exchange.open() });
    return next(exchange);
  };
};

/** With `explain=true`, returns the storage calls that the request would make, in place of its effect. Operators see the rules on rows that it applied. */
const explanation: Middleware = (_route, next) => async (exchange) => {
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

/** Records the changes of a write, and the reads of a steward, in the audit log before the request returns or throws. */
const audit: Middleware = (_route, next) => (exchange) => {
  const { caller, open, spent } = exchange;
  return next({
    ...exchange,
    async record(write) {
      const { audit: log, engine } = open();
      if (!isExplaining()) await Promise.all([log.catchUp(), engine.storage.journal?.catchUp()]);
      return collectChanges(
        caller.subject,
        () => withDeferredAppends(write),
        async (changes) => {
          const since = performance.now();
          await log.append(changes).finally(() => {
            spent.audit = (spent.audit ?? 0) + performance.now() - since;
          });
        },
      );
    },
  });
};

/** What happens to each request of a route, from the outside to the inside. `catchProblems` is around all of it, also for a path without a route. */
export const MIDDLEWARE: readonly Middleware[] = [misconfigured, authentication, parameters, explanation, audit];
