import { z } from 'zod';
import { type ErrorCode, RowkeyError } from '../errors.ts';
import { pathTo, rootOf } from './route.ts';

/** Problem details (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json';

/** The route that documents every problem; `type` is this path with the code as its fragment. */
export const PROBLEMS_PATH = 'problems';

export type ProblemCode = ErrorCode | 'internal';

interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** When the API returns the problem. */
  readonly when: string;
  /** The action for the caller or the operator. */
  readonly action: string;
}

/** Every error code with its status, title and documentation. The page of `type` shows the documentation. */
export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = {
  'invalid-input': {
    status: 400,
    title: 'Validation failed',
    when: 'The path, the query, a header or the body is not valid. "field" names the first invalid field, "errors" lists up to 20 of them, "accepted" says what is allowed.',
    action: 'Correct the request. /api/openapi.json has the schema of every route.',
  },
  'never-succeeds': {
    status: 400,
    title: 'Bad request',
    when: 'The request cannot succeed, now or later.',
    action: 'Do not retry it.',
  },
  unauthenticated: {
    status: 401,
    title: 'Unauthorized',
    when: 'The request has no bearer token, or the token is expired, or from another issuer, or for another audience, or not signed by a key of the issuer.',
    action: 'Get a new token and send it in the Authorization header.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    when: 'The token is valid, but its roles or claims do not allow the request, or grants are revoked for the identity.',
    action: 'Use a token with a role or claim that "accepted" names, or request only what it allows.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    when: 'No entity, file or operation has this key, or no route has this path.',
    action: 'Check the path and the key. POST and PUT create an entity; PATCH and DELETE need an existing one.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    when: 'The path exists, but not with this method.',
    action: 'Use a method that the Allow header lists.',
  },
  'duplicate-key': {
    status: 409,
    title: 'Conflict',
    when: 'An entity with this key already exists.',
    action: 'Use another key, or PUT to replace the entity.',
  },
  'duplicate-value': {
    status: 409,
    title: 'Conflict',
    when: 'Another entity has this value of the unique field that "field" names, or two entities of a batch have the same key or unique value.',
    action: 'Use another value. A value that was just given up may stay taken for up to 90 seconds.',
  },
  referenced: {
    status: 409,
    title: 'Conflict',
    when: 'Other entities refer to this one, so it cannot be deleted, archived, moved or given another value of the field that they refer to. The message names the entities and their field.',
    action: 'Delete or change the entities that refer to it first.',
  },
  'length-required': {
    status: 411,
    title: 'Length required',
    when: 'The request has no body, or a body without a Content-Length header. Chunked bodies are not supported.',
    action: 'Send a body with the Content-Length header.',
  },
  'etag-mismatch': {
    status: 412,
    title: 'Precondition failed',
    when: 'If-Match or If-None-Match does not hold: the entity changed since it was read, or does not exist, or exists although If-None-Match is *. "etag" is the current ETag, if there is one.',
    action: 'Read the entity, apply the change again, and repeat the request with the new ETag.',
  },
  'too-large': {
    status: 413,
    title: 'Payload too large',
    when: 'The body, a file, a field, the entity, a batch or the children to include exceed a limit, which "accepted" or the message names.',
    action: 'Send or request less at once.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    when: 'The body is not JSON, or the file has a type that is not accepted.',
    action: 'Send one of the types that "accepted" lists.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too many requests',
    when: 'The identity exceeded the number of grants per minute.',
    action: 'Retry after the seconds in the Retry-After header. Use a grant until it expires.',
  },
  internal: {
    status: 500,
    title: 'Internal server error',
    when: 'The API failed unexpectedly. The log of the app has the error. A write may have been applied.',
    action: 'Retry once. If the error persists, report it to the operator.',
  },
  busy: {
    status: 503,
    title: 'Service unavailable',
    when: 'Other requests are writing the same rows, or the entity is being moved, or the first attempt of a repeated request is still running. Nothing was changed.',
    action: 'Retry after the seconds in the Retry-After header.',
  },
  'storage-unavailable': {
    status: 503,
    title: 'Service unavailable',
    when: 'Storage or the key vault does not respond, or throttles. A write of an entity was applied as a whole or not at all.',
    action: 'Retry after the seconds in the Retry-After header. Send a POST again with the same Idempotency-Key.',
  },
  'identity-unavailable': {
    status: 503,
    title: 'Service unavailable',
    when: 'The signing keys of the token issuer cannot be fetched, so no token can be checked.',
    action: 'Retry after the seconds in the Retry-After header. Operator: check that TOKEN_JWKS_URI is reachable.',
  },
  'needs-repair': {
    status: 503,
    title: 'Service unavailable',
    when: 'Stored data was lost, or changed outside the API, and cannot be read. "field" names the field, if there is one.',
    action: 'Do not retry. Replace the field with PUT, or ask the operator to run the consistency check.',
  },
  'wrong-setting': {
    status: 503,
    title: 'Service unavailable',
    when: 'A setting of the app is wrong, or a change of the model was rejected.',
    action: 'Do not retry. Operator: the log of the app names the setting or the change.',
  },
  'not-provisioned': {
    status: 503,
    title: 'Service unavailable',
    when: 'A table, queue or container of the app does not exist. A write of an entity was applied as a whole or not at all.',
    action: 'Retry later. Operator: /api/health and the log of the app name what is missing and how to create it.',
  },
};

/** `type` is a path and not a full URL, because the app does not know the origin that its callers use. */
export const Problem = z.object({
  type: z.string().meta({ format: 'uri-reference', description: 'The documentation of the problem' }),
  title: z.string(),
  status: z.int(),
  detail: z.string().describe('What failed, for people; the text may change'),
  code: z.string().describe('What failed, for programs; the code is stable'),
  field: z.string().optional().describe('The first invalid field'),
  accepted: z.string().optional().describe('What is accepted'),
  etag: z.string().optional().describe('The current ETag'),
  errors: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
});
export type Problem = z.infer<typeof Problem>;

/** Replaces messages that only operators can act on, such as those with the name of a setting or a table. */
export const FOR_OPERATORS: Partial<Record<ErrorCode, string>> = {
  'wrong-setting': 'The app is misconfigured. The operator finds the reason in the log of the app.',
  'needs-repair': 'Stored data was lost, or changed outside the API. The operator must repair it.',
  'not-provisioned': 'A storage resource of the app does not exist. The operator must create it; /api/health names it.',
};

/** `root` is the root of the instance whose page documents the problem. */
export function toProblem({ code, message, details }: RowkeyError, root = rootOf('')): Problem {
  const { retryAfter: _, detail = FOR_OPERATORS[code] ?? message, ...members } = details;
  return { ...problemOf(root, code, detail), ...members };
}

/** For an error without a code. Its message is never shown. */
export function toInternalProblem(root: string): Problem {
  return problemOf(root, 'internal', 'The request failed unexpectedly. The error was logged.');
}

function problemOf(root: string, code: ProblemCode, detail: string): Problem {
  const { status, title } = PROBLEMS[code];
  return { type: `${pathTo(root, PROBLEMS_PATH)}#${code}`, title, status, detail, code };
}

interface ProblemLog {
  error(...texts: string[]): void;
}

/** The problem of an error of a request. Logs what only operators can act on. */
export function reportProblem(error: unknown, root: string, log: ProblemLog): Problem {
  if (!(error instanceof RowkeyError)) {
    logUnexpected(error, log);
    return toInternalProblem(root);
  }
  if (error.code in FOR_OPERATORS) log.error(error.message);
  return toProblem(error, root);
}

/** Omits the message, which may contain a key or a part of the request. The stack is enough to find the cause. */
function logUnexpected(error: unknown, log: ProblemLog): void {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const frames = stack.split('\n').filter((line) => line.startsWith('    at '));
  log.error(`An unexpected ${name}`, frames.join('\n'));
}
