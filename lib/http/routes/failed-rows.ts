import { z } from 'zod';
import { canRead } from '../../access/rule.ts';
import { RowkeyError } from '../../base/errors.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { Problem, type ProblemLog, reportProblem } from '../problem.ts';
import type { RequestContext } from '../route.ts';

/** What requests that write many rows say of those that failed. */

/** Well below the time that the Functions host gives a request. */
export const TIME_BUDGET_MS = 20_000;
/** The number of written rows tells a caller enough to look at the others. */
const MAX_PROBLEMS = 20;

export const FailedRows = z.object({
  failed: z.int().describe('How many rows could not be written'),
  problems: z.array(Problem).max(MAX_PROBLEMS).describe('The problems of the first of them'),
});

/** The problems of rows that failed. The detail names a row, so it is for callers who may read its entity. */
export function describeFailed(
  failed: readonly { readonly entity: Entity; readonly error: RowkeyError }[],
  { caller, root, log: each }: RequestContext,
): z.infer<typeof FailedRows> {
  const log = sayOnce(each);
  const problems = failed.slice(0, MAX_PROBLEMS).map(({ entity, error }) => {
    const { code, message, cause, ...fields } = error;
    return reportProblem(
      new RowkeyError(code, message, { cause, ...(canRead(entity, caller) ? fields : {}) }),
      root,
      log,
    );
  });
  return { failed: failed.length, problems };
}

/** One mistake of the app may fail every row. */
export function sayOnce(log: ProblemLog): ProblemLog {
  const said = new Set<string>();
  return {
    error(line, ...frames) {
      if (!said.has(line)) log.error(line, ...frames);
      said.add(line);
    },
  };
}
