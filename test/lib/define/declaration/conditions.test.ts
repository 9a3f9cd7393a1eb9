import { expect, test } from 'vitest';
import { type Conditions, checkConditions } from '../../../../lib/define/declaration/conditions.ts';

const ETAG = `W/"datetime'2026-11-20T10%3A00%3A00Z'"`;

test.each<[Conditions, string | undefined, boolean]>([
  [{}, ETAG, true],
  [{}, undefined, true],
  [{ ifMatch: ETAG }, ETAG, true],
  [{ ifMatch: ETAG.slice(2) }, ETAG, true],
  [{ ifMatch: `"other", ${ETAG}` }, ETAG, true],
  [{ ifMatch: '"other"' }, ETAG, false],
  [{ ifMatch: '' }, ETAG, false],
  [{ ifMatch: '*' }, ETAG, true],
  [{ ifMatch: '*' }, undefined, false],
  [{ ifMatch: ETAG }, undefined, false],
  [{ ifNoneMatch: ETAG }, ETAG, false],
  [{ ifNoneMatch: `"other", ${ETAG}` }, ETAG, false],
  [{ ifNoneMatch: '"other"' }, ETAG, true],
  [{ ifNoneMatch: '*' }, ETAG, false],
  [{ ifNoneMatch: '*' }, undefined, true],
  [{ ifMatch: '*', ifNoneMatch: '"other"' }, ETAG, true],
  [{ ifMatch: '*', ifNoneMatch: ETAG }, ETAG, false],
])('evaluates %j on %s to %s', (conditions, etag, holds) => {
  const check = () => checkConditions(conditions, etag);
  if (holds) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ code: 'etag-mismatch', ...(etag && { etag }) }));
});

test.each([
  ['7', ETAG, 'Send one as a response has it, with its quotation marks.'],
  ['"7"', ETAG, 'The entity changed since it was read.'],
  ['*', undefined, 'The entity changed since it was read.'],
])('says what is wrong with %s', (ifMatch, etag, message) => {
  expect(() => checkConditions({ ifMatch }, etag)).toThrow(message);
});
