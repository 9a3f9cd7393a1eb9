import { canReadWhole } from '../../access/rule.ts';
import type { Caller } from '../../access/token.ts';
import { rereadIfBlobGone } from '../../api/open.ts';
import { RowkeyError } from '../../base/errors.ts';
import { FurtherRowLost } from '../../engine/read/entity-rows.ts';
import { isRead, type Middleware } from '../route.ts';

/** Retries a read whose blob is missing. A write is not retried: its row is not stale, so a missing blob is lost. */
export const rereads: Middleware = (route, next) => {
  const subject = `Route ${route.name}`;
  const options = { attempts: isRead(route) ? undefined : 1 };
  return (exchange) => {
    const handle = (isLastAttempt: boolean) =>
      next({ ...exchange, isLastAttempt }).catch((error: unknown) => {
        throw withLostKey(error, exchange.caller);
      });
    return rereadIfBlobGone(subject, handle, options);
  };
};

/** A list fails for any of its entities, so its callers need the key of the one to repair. */
function withLostKey(error: unknown, caller: Caller): unknown {
  if (!(error instanceof FurtherRowLost) || !canReadWhole(error.entity, caller)) return error;
  return new RowkeyError(error.code, error.message, { detail: error.detailWithKeys, cause: error });
}
