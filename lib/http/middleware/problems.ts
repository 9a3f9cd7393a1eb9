import type { HttpResponseInit, InvocationContext } from '@azure/functions';
import { RowkeyError } from '../../base/errors.ts';
import { measureCost } from '../../storage/cost.ts';
import { PROBLEM_TYPE, reportProblem } from '../problem.ts';
import { toResponse } from '../response.ts';
import type { RouteResult, Spent } from '../route.ts';

/** Returns the error of `work`, or of its serialization, as a problem: the host would respond without a body. */
export function catchProblems(
  invocation: InvocationContext,
  root: string,
  work: (spent: Spent) => Promise<HttpResponseInit>,
): Promise<HttpResponseInit> {
  return measureCost((cost) => {
    const spent: Spent = { cost };
    return work(spent).catch((error: unknown) => toResponse(toErrorResult(error, root, invocation), spent));
  });
}

function toErrorResult(error: unknown, root: string, invocation: InvocationContext): RouteResult {
  const headers: Record<string, string> = { 'content-type': PROBLEM_TYPE };
  const problem = reportProblem(error, root, invocation);
  if (!(error instanceof RowkeyError)) return { status: problem.status, body: problem, headers };
  if (problem.status === 401) headers['www-authenticate'] = 'Bearer';
  if (problem.status === 405 && problem.accepted !== undefined) headers.allow = problem.accepted;
  if (error.retryAfter !== undefined) headers['retry-after'] = String(error.retryAfter);
  if (error.etag !== undefined) headers.etag = error.etag;
  return { status: problem.status, body: problem, headers };
}
