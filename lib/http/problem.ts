import { z } from 'zod';
import { framesOf } from '../base/app-mistake.ts';
import { isKnownError, type RowkeyError } from '../base/errors.ts';
import { kindOf } from '../storage/errors.ts';
import { PROBLEMS, type ProblemCode } from './problem-kinds.ts';
import { pathTo, type Route, type RouteResult, rootOf } from './route.ts';

/** Problem details (RFC 9457). */
export const PROBLEM_TYPE = 'application/problem+json';

/** The route that documents every problem; `type` is this path with the code as its fragment. */
const PROBLEMS_PATH = 'problems';

/** `type` is a path and not a full URL, because the app does not know the origin that its callers use. */
export const Problem = z.object({
  type: z.string().meta({ format: 'uri-reference', description: 'The documentation of the problem' }),
  title: z.string().describe('The HTTP status, for people'),
  status: z.int().describe('The HTTP status'),
  detail: z.string().describe('What failed, for people; the text may change'),
  code: z.string().describe('What failed, for programs; the code is stable'),
  field: z.string().optional().describe('The first invalid field'),
  accepted: z.string().optional().describe('What is accepted'),
  etag: z.string().optional().describe('The current ETag, with etag-mismatch'),
  errors: z
    .array(z.object({ field: z.string(), message: z.string() }))
    .optional()
    .describe('Up to 20 invalid fields, with a message each'),
});
export type Problem = z.infer<typeof Problem>;

/** `root` is the root of the instance whose page documents the problem. */
export function toProblem(error: RowkeyError, root = rootOf('')): Problem {
  const { code, message, detail = PROBLEMS[code].shown ?? message, field, accepted, etag, errors } = error;
  return { ...problemOf(root, code, detail), field, accepted, etag, errors };
}

function problemOf(root: string, code: ProblemCode, detail: string): Problem {
  const { status, title } = PROBLEMS[code];
  return { type: `${pathTo(root, PROBLEMS_PATH)}#${code}`, title, status, detail, code };
}

export interface ProblemLog {
  error(line: string, ...frames: string[]): void;
}

/** The problem of an error of a request. Logs what only operators can act on. */
export function reportProblem(error: unknown, root: string, log: ProblemLog): Problem {
  if (!isKnownError(error)) {
    log.error(`An unexpected ${kindOf(error)}`, ...framesOf(error));
    return problemOf(root, 'internal', 'The request failed unexpectedly. The error was logged.');
  }
  if (PROBLEMS[error.code].shown !== undefined) log.error(error.message, ...framesOf(error));
  return toProblem(error, root);
}

const HTML = 'text/html; charset=utf-8';

const page: RouteResult = {
  status: 200,
  headers: { 'content-type': HTML, 'content-security-policy': "default-src 'none'" },
  bytes: new TextEncoder().encode(toHtml()),
};

/** The page that the `type` of each problem leads to. It is served even while a setting is wrong, which is a problem too. */
export const problemsRoute: Route = {
  name: 'problems',
  method: 'GET',
  path: PROBLEMS_PATH,
  kind: 'read',
  roles: undefined,
  summary: 'The documentation of every problem that the API returns, as a web page',
  success: { status: 200, description: 'The page, with a section for each code', types: [HTML] },
  whenMisconfigured: page,
  handle: async () => page,
};

/** The texts are constants without markup but code spans, so nothing is escaped. */
function toHtml(): string {
  const sections = Object.entries(PROBLEMS).map(
    ([code, { status, title, retry, when, action, operator, notes = [] }]) => {
      const texts = [
        `${status} ${title}`,
        when,
        `${action} Retry: ${retry}.`,
        ...(operator === undefined ? [] : [`Operator: ${operator}`]),
        ...notes,
      ];
      return `<h2 id="${code}">${code}</h2>\n${texts.map((text) => `<p>${text}</p>`).join('\n')}`;
    },
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rowkey problems</title>
<h1>Problems</h1>
<p>Every error response is a problem (RFC 9457). Its "type" leads to one of these sections.</p>
${sections.join('\n').replaceAll(/`([^`]+)`/g, '<code>$1</code>')}
</html>
`;
}
