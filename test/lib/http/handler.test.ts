import { HttpResponse, type HttpResponseInit } from '@azure/functions';
import { expect, test } from 'vitest';
import { createHandler, type Handle, type HandlerOptions } from '../../../lib/http/handler.ts';
import { RowkeyError } from '../../../lib/index.ts';
import { model } from '../../fixtures/model.ts';
import { storageRows } from '../../kit/storage.ts';
import { openApp } from '../../open-app.ts';
import { testApp, testInvocation, testRequest } from './request.ts';

const app = testApp(import.meta.url);

async function call(handle: Handle, options: HandlerOptions = { roles: ['reader'] }) {
  const { invocation, logged } = testInvocation();
  const { body, ...response } = await createHandler(() => app, options, handle)(testRequest(), invocation);
  return { ...response, body: typeof body === 'string' ? JSON.parse(body) : body, logged };
}

test('returns the response of the function, with the caller whose roles were checked', async () => {
  const response = { status: 201, jsonBody: { made: true } };
  expect(await call(() => ({ ...response, headers: { 'x-own': '1' } }))).toMatchObject(response);
  expect(await call((_, { caller }) => ({ jsonBody: caller.subject }))).toMatchObject({ jsonBody: 'ann' });
  expect(await call((_, { caller }) => ({ jsonBody: caller.subject }), { roles: undefined })).toMatchObject({
    jsonBody: '',
  });
});

const timing = 'storage;dur=0.0;desc="0 transactions"';
test.each<[string, () => HttpResponseInit, object]>([
  ['no headers', () => ({}), { 'server-timing': timing }],
  ['headers', () => ({ headers: { 'X-Own': '1' } }), { 'server-timing': timing, 'x-own': '1' }],
  ['timing of its own', () => ({ headers: { 'server-timing': 'own' } }), { 'server-timing': `own, ${timing}` }],
  [
    'cookies',
    () => ({ headers: new Headers([['set-cookie', 'a=1']]) }),
    { 'server-timing': timing, 'set-cookie': 'a=1' },
  ],
  [
    'a response object',
    () => new HttpResponse({ headers: { 'x-own': '1' }, body: 'text' }),
    { 'content-type': 'text/plain;charset=UTF-8', 'server-timing': timing, 'x-own': '1' },
  ],
])('adds the cost in storage to a response with %s', async (_, respond, expected) => {
  const { invocation } = testInvocation();
  const response = await createHandler(() => app, { roles: undefined }, respond)(testRequest(), invocation);
  expect(Object.fromEntries(response.headers as Headers)).toEqual(expected);
  if (response instanceof HttpResponse) expect(await response.text()).toBe('text');
});

test('counts the storage transactions of the function', async () => {
  const { headers } = await call(async () => {
    await storageRows
      .readRow(app.engine.storage, { table: 'employees', partition: 'Sales', row: 'empid_1' })
      .catch(() => undefined);
    return {};
  });
  expect((headers as Headers).get('server-timing')).toMatch(/^storage;dur=[\d.]+;desc="1 transaction"$/);
});

test('returns an error of Rowkey as the problem that a route returns', async () => {
  const busy = new RowkeyError('busy', 'Others write. Try again.', { retryAfter: 1 });
  expect(await call(() => Promise.reject(busy))).toMatchObject({
    status: 503,
    headers: { 'content-type': 'application/problem+json', 'retry-after': '1', vary: 'Authorization, Origin' },
    body: { code: 'busy', detail: 'Others write. Try again.' },
  });
});

test('does not call the function without a role, and keeps an unexpected error to the log', async () => {
  expect(await call(() => expect.fail('called'), { roles: ['hr'] })).toMatchObject({
    status: 403,
    body: { accepted: 'hr' },
  });
  const failed = await call(() => {
    throw new Error('the key of Ann');
  });
  expect(failed).toMatchObject({ status: 500, body: { code: 'wrong-operation' } });
  expect(failed.logged.join()).toMatch(/The function "[^"]*" threw Error\. {5}at /);
  expect(JSON.stringify(failed)).not.toContain('Ann');
});

test('rejects a role that the model does not have', () => {
  const rowkey = openApp(import.meta.url, model);
  expect(() => rowkey.handler({ roles: ['emperor'] }, () => ({}))).toThrow('"emperor" is not a role of the model');
});
