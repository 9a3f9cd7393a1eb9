import { expect, test, vi } from 'vitest';
import { serveBuiltOnce } from '../../../lib/http/built-once.ts';
import type { RequestContext } from '../../kit/http.ts';

const contextOf = (root: string, encodings?: string) =>
  ({
    root,
    headers: new Headers(encodings === undefined ? {} : { 'accept-encoding': encodings }),
  }) as unknown as RequestContext;
const textOf = ({ bytes }: { readonly bytes?: Uint8Array }) => new TextDecoder().decode(bytes);

test('builds a document once for concurrent first requests of a root', async () => {
  const build = vi.fn(async (root: string) => ({ root }));
  const serve = serveBuiltOnce({ build });
  const served = await Promise.all(Array.from({ length: 20 }, () => serve(contextOf('/api'))));
  expect(new Set(served.map(textOf))).toEqual(new Set(['{"root":"/api"}']));
  expect(build).toHaveBeenCalledTimes(1);
  expect(textOf(await serve(contextOf('/other')))).toBe('{"root":"/other"}');
  expect(build).toHaveBeenCalledTimes(2);
});

test('builds a document again after a failure, which all concurrent requests get', async () => {
  const build = vi.fn<(root: string) => unknown>(() => ({ built: true }));
  build.mockImplementationOnce(() => {
    throw new Error('no memory');
  });
  const serve = serveBuiltOnce({ build });
  const failed = await Promise.allSettled([serve(contextOf('/api')), serve(contextOf('/api'))]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(textOf(await serve(contextOf('/api')))).toBe('{"built":true}');
  expect(build).toHaveBeenCalledTimes(2);
});

test('compresses a document once for each encoding', async () => {
  const build = vi.fn(() => ({ built: true }));
  const serve = serveBuiltOnce({ build });
  const all = await Promise.all(['br', 'gzip', undefined, 'br', 'gzip'].map((each) => serve(contextOf('/api', each))));
  expect(new Set(all.map(({ bytes }) => bytes)).size).toBe(3);
  expect(build).toHaveBeenCalledTimes(1);
});
