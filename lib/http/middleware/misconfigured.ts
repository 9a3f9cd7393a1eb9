import { RowkeyError } from '../../base/errors.ts';
import type { Middleware } from './middleware.ts';

/** While a setting is wrong, a route may have a response of its own. The start has logged the error, and probes of health would repeat it. */
export const misconfigured: Middleware = async (exchange, next) => {
  try {
    return await next(exchange);
  } catch (error) {
    const { whenMisconfigured } = exchange.route;
    if (!whenMisconfigured || !(error instanceof RowkeyError) || error.code !== 'wrong-setting') throw error;
    return whenMisconfigured;
  }
};
