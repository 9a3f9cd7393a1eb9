import { PROBLEMS, PROBLEMS_PATH } from '../problem.ts';
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
  roles: undefined,
  summary: 'The documentation of every problem that the API returns, as a web page',
  success: { status: 200, description: 'The page, with a section for each code', types: [HTML] },
  whenMisconfigured: page,
  handle: async () => page,
};

/** The texts are constants without markup, so nothing is escaped. */
function toHtml(): string {
  const sections = Object.entries(PROBLEMS).map(
    ([code, { status, title, when, action }]) =>
      `<h2 id="${code}">${code}</h2>\n<p>${status} ${title}</p>\n<p>${when}</p>\n<p>${action}</p>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rowkey problems</title>
<h1>Problems</h1>
<p>Every error response is a problem (RFC 9457). Its "type" leads to one of these sections.</p>
${sections.join('\n')}
</html>
`;
}
