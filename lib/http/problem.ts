import { z } from 'zod';
import type { ErrorCode, RowkeyError } from '../errors.ts';

/** Problem details (RFC 9457): the one table from our codes to statuses and titles. */
const PROBLEMS: Readonly<Record<ErrorCode, { readonly status: number; readonly title: string }>> = {
  'invalid-input': { status: 400, title: 'Validation failed' },
  unauthenticated: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  'not-found': { status: 404, title: 'Not found' },
  'duplicate-key': { status: 409, title: 'Conflict' },
  'duplicate-value': { status: 409, title: 'Conflict' },
  busy: { status: 503, title: 'Service unavailable' },
  'etag-mismatch': { status: 412, title: 'Precondition failed' },
  'method-not-allowed': { status: 405, title: 'Method not allowed' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  'length-required': { status: 411, title: 'Length required' },
  'too-large': { status: 413, title: 'Payload too large' },
  'unsupported-media-type': { status: 415, title: 'Unsupported media type' },
  'storage-unavailable': { status: 503, title: 'Service unavailable' },
  'identity-unavailable': { status: 503, title: 'Service unavailable' },
  'needs-repair': { status: 503, title: 'Service unavailable' },
  'wrong-setting': { status: 503, title: 'Service unavailable' },
  'never-succeeds': { status: 400, title: 'Bad request' },
};

export const PROBLEM_TYPE = 'application/problem+json';

/** `type` is stable and what a program should look at; it is the path of a fragment in the documentation. */
export const Problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  field: z.string().optional(),
  accepted: z.string().optional(),
  etag: z.string().optional(),
  errors: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
});
export type Problem = z.infer<typeof Problem>;

/** Of failures whose message is for the log: the name of a setting or of a table is nothing that a caller can act on. */
export const FOR_OPERATORS: Partial<Record<ErrorCode, string>> = {
  'wrong-setting': 'The operator must check the settings: the log of the app names what is wrong.',
  'needs-repair': 'Something of it was lost, or changed in storage; the operator has to look at it.',
};

/** What a caller is told of a failure. */
export function toProblem({ code, message, details }: RowkeyError): Problem {
  const { retryAfter: _, ...shown } = details;
  return { type: `/problems/${code}`, ...PROBLEMS[code], detail: FOR_OPERATORS[code] ?? message, ...shown };
}

/** What a caller is told of a failure that is none of ours. */
export const INTERNAL_PROBLEM: Problem = {
  type: '/problems/internal',
  title: 'Internal server error',
  status: 500,
  detail: 'The failure was logged; trying again may help.',
};
