import { RowkeyError } from '../../base/errors.ts';
import type { Middleware } from '../route.ts';

/** While a setting is wrong, a route for probes has a response of its own: the start has logged the error. */
export const misconfigured: Middleware = ({ whenMisconfigured }, next) => {
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
