import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define.ts';
import { isNotModified, readConditions, toEntityHeaders, toViewEtag } from '../../../lib/http/bind.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { testApp, testContext } from './request.ts';

const ETAG = `W/"datetime'2026-11-20T10%3A00%3A00Z'"`;
const app = testApp(import.meta.url);
const withHeaders = (headers: Record<string, string>) => testContext(app, { headers: new Headers(headers) });

test('gives each set of hidden fields an ETag of its own, whatever the order of the fields', () => {
  const views = [[], ['age'], ['age', 'salary'], ['agesalary']].map((hidden) => toViewEtag(ETAG, hidden));
  expect(new Set(views).size).toBe(views.length);
  expect(toViewEtag(ETAG, [])).toBe(ETAG);
  expect(toViewEtag(ETAG, ['salary', 'age'])).toBe(toViewEtag(ETAG, ['age', 'salary']));
});

test('reads the ETag of any view as the ETag of the state', () => {
  const view = toViewEtag(ETAG, ['salary']);
  expect(view).not.toBe(ETAG);
  const headers = { 'if-match': `"other", ${view}`, 'if-none-match': view };
  expect(readConditions(withHeaders(headers))).toEqual({ ifMatch: `"other", ${ETAG}`, ifNoneMatch: ETAG });
});

test('reads no conditions without the headers, and keeps * and an empty header', () => {
  expect(readConditions(withHeaders({}))).toEqual({ ifMatch: undefined, ifNoneMatch: undefined });
  expect(readConditions(withHeaders({ 'if-match': '', 'if-none-match': '*' }))).toEqual({
    ifMatch: '',
    ifNoneMatch: '*',
  });
});

test.each([
  [undefined, false],
  ['', false],
  ['*', true],
  [ETAG, true],
  [ETAG.slice(2), true],
  [`"a", ${ETAG}`, true],
  ['"a"', false],
  ['not quoted', false],
])('compares If-None-Match %j with the current ETag: not modified is %s', (header, expected) => {
  expect(isNotModified(withHeaders(header === undefined ? {} : { 'if-none-match': header }), ETAG)).toBe(expected);
});

test('is modified for a caller whose copy has other hidden fields', () => {
  const copy = toViewEtag(ETAG, ['salary']);
  expect(isNotModified(withHeaders({ 'if-none-match': copy }), ETAG)).toBe(false);
  expect(isNotModified(withHeaders({ 'if-none-match': copy }), copy)).toBe(true);
});

test('lets a client cache an entity for as long as the entity declares', () => {
  const declaration = {
    schema: z.object({ id: z.string() }),
    key: { partition: 'p', row: '{id}' },
    access: { read: ['reader'], write: ['hr'] },
  } as const;
  const { fresh, kept } = deploy(
    defineEntity('fresh', { ...declaration, table: 'fresh' }),
    defineEntity('kept', { ...declaration, table: 'kept', maxAge: 60 }),
  );
  const caller = { subject: 'ann', roles: [], claims: {} };
  const stored = { etag: ETAG };
  expect(toEntityHeaders(fresh, caller, stored)).toEqual({ etag: ETAG });
  expect(toEntityHeaders(kept, caller, stored)).toEqual({
    etag: ETAG,
    'cache-control': 'private, max-age=60',
  });
});
