import { describe, expect, test } from 'vitest';
import { formatRange, readByteRange } from '../../../lib/http/byte-range.ts';
import type { RequestContext } from '../../kit/http.ts';

const WHOLE = { etag: '"a"', length: 1_000 };
const read = (headers: Record<string, string>, whole = WHOLE) =>
  readByteRange({ headers: new Headers(headers) as RequestContext['headers'] } as RequestContext, whole);

describe('a range of bytes', () => {
  test.each([
    ['bytes=0-99', 'bytes 0-99/1000'],
    ['bytes=900-', 'bytes 900-999/1000'],
    ['bytes=-1', 'bytes 999-999/1000'],
    ['bytes=-5000', 'bytes 0-999/1000'],
    ['bytes=999-5000', 'bytes 999-999/1000'],
  ])('of %s is %s', (range, expected) => {
    const found = read({ range });
    expect(found && formatRange(found, WHOLE.length)).toBe(expected);
  });

  test.each(['', 'bytes=', 'bytes=-', 'bytes=5-2', 'bytes=0-1,5-6', 'items=0-1', 'bytes=a-b', 'bytes=0x1-2'])(
    'of "%s" is ignored',
    (range) => expect(read({ range })).toBeUndefined(),
  );

  test.each(['bytes=1000-', 'bytes=1000-2000', 'bytes=-0'])('of %s is after the last byte', (range) => {
    expect(() => read({ range })).toThrow(expect.objectContaining({ code: 'range-not-satisfiable' }));
  });

  test('is ignored if If-Range names another file, or a time', () => {
    expect(read({ range: 'bytes=0-1', 'if-range': '"a"' })).toEqual({ start: 0, count: 2 });
    for (const other of ['"b"', 'W/"a"', 'Thu, 26 Nov 2026 00:00:00 GMT'])
      expect(read({ range: 'bytes=0-1', 'if-range': other })).toBeUndefined();
  });
});
