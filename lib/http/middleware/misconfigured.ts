import { RowkeyError } from '../../base/errors.ts';
import type { Middleware } from '../route.ts';

/** While a setting is wrong, a route may have a response of its own. The start has logged the error, and probes of health would repeat it. */
export const misconfigured: Middleware = ({ whenMisconfigured }, next) => {
  if (!whenMisconfigured) return next;
  return async (exchange) => {
    try {
      return await next(exchange);
    } catch (error) {
      if (!(error instanceof RowkeyError) || error.code !== 'wrong-setting') throw error;
      return whenMisconfigured;
    }
  };
};
