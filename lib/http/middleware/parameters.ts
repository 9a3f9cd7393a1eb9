import { checkQuery } from '../query.ts';
import type { Middleware } from '../route.ts';

/** Rejects unknown parameters of a public route. Those of another route are checked once its caller is admitted. */
export const parameters: Middleware = (route, next) => {
  if (route.roles) return next;
  return async (exchange) => {
    if (exchange.query.size > 0) checkQuery({ ...exchange, route, app: exchange.open() });
    return next(exchange);
  };
};
