import { describe, expect, test } from 'vitest';
import { describeRoutes } from '../../../lib/http/openapi.ts';
import { createRoutes } from '../../../lib/http/routes.ts';
import { model } from '../../fixtures/model.ts';
import { type Exchange, type OpenApi, openapiChecker } from '../../openapi.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string }[];
}

const openapi = JSON.parse(JSON.stringify(describeRoutes(createRoutes(model))));
const { paths }: OpenApi = openapi;
const operations = Object.values(paths).flatMap((path) => Object.values(path) as Operation[]);

function taking(header: string): string[] {
  return operations
    .filter(({ parameters }) => parameters.some(({ name }) => name === header))
    .map(({ operationId }) => operationId)
    .filter((name) => /^(employees|messagehours|operations)-/.test(name))
    .sort();
}

test('describes conditions for the operations that support them, and for no others', () => {
  const heeding = ['delete', 'file-photo-delete', 'file-photo-put', 'patch', 'replace'].map(
    (verb) => `employees-${verb}`,
  );
  expect(taking('If-Match')).toEqual(heeding);
  expect(taking('If-None-Match')).toEqual([...heeding, 'employees-get', 'employees-file-photo-get'].sort());
});

describe('the description and a response', () => {
  const { disagreement } = openapiChecker(openapi);
  const problem = {
    type: '/api/problems#not-found',
    title: 'Not found',
    status: 404,
    detail: 'None.',
    code: 'not-found',
  };
  const answer = (over: Partial<Omit<Exchange, 'headers'>> & { body?: unknown; type?: string; headers?: object }) =>
    disagreement({
      method: over.method ?? 'GET',
      path: over.path ?? '/api/departments/Sales',
      status: over.status ?? 200,
      headers: new Headers({ 'content-type': over.type ?? 'application/json', ...over.headers }),
      text: over.text ?? JSON.stringify(over.body),
    });
  const film = { genre: 'Drama', title: 'Alien', year: 1979, filmId: '1', cast: ['A'] };

  test.each([
    ['an entity', { body: { department: 'Sales' } }],
    ['an explanation', { path: '/api/departments/Sales?explain=true', body: { steps: [], transactions: 0 } }],
    ['an explanation of a create', { method: 'POST', path: '/api/people', body: { steps: [], transactions: 0 } }],
    ['a part copy', { path: '/api/movies/by/actor/A', body: { items: [film] } }],
    ['a selection', { path: '/api/movies/Drama?select=title', body: { items: [{ title: 'Alien' }] } }],
    [
      'a degraded health',
      {
        path: '/api/health',
        status: 503,
        body: { status: 'degraded', storage: 'unavailable', declaration: 'unknown', settings: 'ok', resources: 'ok' },
      },
    ],
    ['a problem', { status: 404, type: 'application/problem+json', body: problem }],
    ['a 304', { status: 304, text: '', headers: { etag: '"1"' } }],
    ['no operation', { path: '/api/nothing', status: 404, text: '' }],
  ])('agree: %s', (_, over) => {
    expect(answer(over)).toBeUndefined();
  });

  test.each([
    ['a field that is not described', { body: { department: 'Sales', secret: 1 } }, 'additional'],
    ['a required field that is missing', { body: { description: 'x' } }, "required property 'department'"],
    ['a part copy without its key', { path: '/api/movies/by/actor/A', body: { items: [{ cast: [] }] } }, 'title'],
    ['a problem as JSON', { status: 404, body: problem }, 'media type'],
    ['an empty problem', { status: 404, text: '' }, 'media type "application/json"'],
    [
      'a degraded health that is well',
      { path: '/api/health', status: 503, body: { status: 'well' } },
      'allowed values',
    ],
    ['a 304 without an ETag', { status: 304, text: '' }, 'ETag'],
    ['a 304 with a body', { status: 304, body: {}, headers: { etag: '"1"' } }, 'a body'],
    ['a 401 without WWW-Authenticate', { status: 401, type: 'application/problem+json', body: problem }, 'WWW-Auth'],
    ['a create without ETag', { method: 'POST', path: '/api/movies', status: 201, body: film }, 'ETag'],
  ])('disagree: %s', (_, over, why) => {
    expect(answer(over)).toContain(why);
  });
});
