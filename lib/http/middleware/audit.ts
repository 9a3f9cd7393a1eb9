import { collectChanges } from '../../engine/note-change.ts';
import { isRead, type Middleware } from '../route.ts';

/** Records the changes of the request in the audit log before it returns or throws. */
export const audit: Middleware = (route, next) => {
  if (isRead(route)) return next;
  return async (exchange) => {
    const { app, caller, spent, isExplanation } = exchange;
    const log = app().audit;
    if (!isExplanation) await log.catchUp();
    const result = await collectChanges(
      caller.subject,
      () => next(exchange),
      async (changes) => {
        const since = performance.now();
        await log.append(changes).finally(() => {
          spent.audit = (spent.audit ?? 0) + performance.now() - since;
        });
      },
    );
    result.onRecorded?.();
    return result;
  };
};
