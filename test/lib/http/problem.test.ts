import { HttpRequest, InvocationContext } from '@azure/functions';
import { describe, expect, test } from 'vitest';
import { problemsRoute, reportProblem, toProblem } from '../../../lib/http/problem.ts';
import { RowkeyError } from '../../../lib/index.ts';
import { type App, httpDoor, type Route } from '../../kit/http.ts';
import { respondWith } from '../../respond-with.ts';

async function request(app: () => App, route: Route) {
  const logged: string[] = [];
  const invocation = new InvocationContext({ logHandler: (_level, ...texts) => logged.push(...texts.map(String)) });
  const url = `http://localhost/api/${route.path}`;
  const response = await respondWith(app, route)(new HttpRequest({ method: 'GET', url }), invocation);
  return { response, logged };
}

async function readPage(app: () => App) {
  const { response } = await request(app, problemsRoute);
  return { response, html: new TextDecoder().decode(response.body as Uint8Array) };
}

function misconfigured(): App {
  throw new RowkeyError('wrong-setting', 'TOKEN_ISSUER is not set.');
}

describe('problem details', () => {
  test('resolve their type to a section of the page', async () => {
    const { html } = await readPage(misconfigured);
    for (const { type, code } of [
      toProblem(new RowkeyError('busy', 'x')),
      reportProblem(new Error('x'), '/api', { error: () => undefined }),
    ]) {
      const { pathname, hash } = new URL(type, 'https://app.example/api/employees/Sales/1?explain=true');
      expect({ pathname, hash }).toEqual({ pathname: `/api/${problemsRoute.path}`, hash: `#${code}` });
      expect(html).toContain(`<h2 id="${code}">`);
    }
  });

  test('carry the code, the members of the error and no Retry-After', () => {
    const error = new RowkeyError('etag-mismatch', 'Changed.', { etag: '"1"', retryAfter: 5 });
    expect(toProblem(error)).toEqual({
      type: '/api/problems#etag-mismatch',
      title: 'Precondition failed',
      status: 412,
      detail: 'Changed.',
      code: 'etag-mismatch',
      etag: '"1"',
    });
  });

  test.each(['wrong-setting', 'needs-repair'] as const)('hide the message of %s, which is for operators', (code) => {
    expect(JSON.stringify(toProblem(new RowkeyError(code, 'the table s3cret')))).not.toContain('s3cret');
  });
});

test.each([httpDoor.healthRoute, problemsRoute])(
  'a wrong setting, logged at start, is not logged again by $path',
  async (route) => {
    const { response, logged } = await request(misconfigured, route);
    expect(response.status).toBe(route === httpDoor.healthRoute ? 500 : 200);
    expect(logged).toEqual([]);
  },
);

describe('the page of problems', () => {
  test('is served while a setting is wrong', async () => {
    const { response, html } = await readPage(misconfigured);
    expect(response).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/html; charset=utf-8', 'x-content-type-options': 'nosniff' },
    });
    expect(html).toContain('<p>404 Not found</p>');
  });

  test('has a section for every code', async () => {
    const { html } = await readPage(misconfigured);
    const sections = [...html.matchAll(/<h2 id="([^"]+)">/g)].map(([, code]) => code);
    expect(sections).toEqual(Object.keys(httpDoor.PROBLEMS));
    expect(sections.length).toBeGreaterThan(15);
  });

  test('contains no markup from the texts of the table', () => {
    expect(Object.values(httpDoor.PROBLEMS).filter((kind) => /[<>&]/.test(Object.values(kind).join()))).toEqual([]);
  });
});
