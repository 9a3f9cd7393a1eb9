import { PROBLEMS_PATH } from '../problem.ts';
import { PROBLEMS } from '../problem-kinds.ts';
import type { Route, RouteResult } from '../route.ts';

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
