import type { Middleware } from '../route.ts';

/** Finds out who calls. What the caller may do is decided by the operation of the route. */
export const authentication: Middleware = ({ roles }, next) => {
  if (!roles) return next;
  return async (exchange) => {
    const authorization = exchange.request.headers.get('authorization') ?? undefined;
    return next({ ...exchange, caller: await exchange.open().authenticate(authorization) });
  };
};
