import { collectChanges } from '../../engine/note-change.ts';
import { isExplaining } from '../../storage/explain.ts';
import type { Middleware } from '../route.ts';

/** Records the changes of a write in the audit log before the write returns or throws. */
export const audit: Middleware = ({ kind }, next) => {
  if (kind === 'read') return next;
  return (exchange) => {
    const { caller, open, spent } = exchange;
    return next({
      ...exchange,
      async record(write) {
        const { audit: log } = open();
        if (!isExplaining()) await log.catchUp();
        return collectChanges(caller.subject, write, async (changes) => {
          const since = performance.now();
          await log.append(changes).finally(() => {
            spent.audit = (spent.audit ?? 0) + performance.now() - since;
          });
        });
      },
    });
  };
};
