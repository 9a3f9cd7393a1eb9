import { collectChanges } from '../../engine/note-change.ts';
import { isRead, type Middleware } from './middleware.ts';

/** Records the changes of the request in the audit log before it returns or throws. */
export const audit: Middleware = async (exchange, next) => {
  const { app, route, caller, spent, isExplanation } = exchange;
  const log = app().audit;
  if (!isRead(route) && !isExplanation) await log.catchUp();
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
