import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ClientGone } from './invoke.ts';
import { decodePath, encodePath } from './route.ts';

/** The limits of the real host: Kestrel's, and the host's own limit for a body. */
const MAX_REQUEST_LINE_BYTES = 8_192;
const MAX_HEADER_LINES = 100;
const MAX_HEADERS_BYTES = 32_768;
export const MAX_BODY_BYTES = 104_857_600;

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;
/** Most values are the same in Latin-1, as Node reads them, and in UTF-8. */
const ASCII = /^[\0-\x7f]*$/;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });
const BODY_READERS = ['arrayBuffer', 'blob', 'formData', 'json', 'text'] as const;

/** The header in which the front end of App Service passes the path and query as the client sent them. */
const PATH_AS_SENT = 'x-waws-unencoded-url';

/** The parts of a request before its body. */
export interface RequestHead {
  /** Decoded once, except `%2F`. */
  readonly path: string;
  readonly url: URL;
  /** By lower-case name. Repeated headers, even `authorization`, are joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads the head of a request, or returns the status with which the real host rejects it before routing. */
export function readHead(request: IncomingMessage): RequestHead | number {
  const { method = '', url: target = '', rawHeaders } = request;
  if (method.length + target.length + ' HTTP/1.1\r\n'.length + 1 > MAX_REQUEST_LINE_BYTES) return 414;
  if (rawHeaders.length / 2 > MAX_HEADER_LINES) return 431;
  // Two characters between a name and its value, and two at the end of each line.
  if (rawHeaders.reduce((sum, { length }) => sum + length + 2, 0) > MAX_HEADERS_BYTES) return 431;
  const { host = '127.0.0.1' } = request.headers;
  if ((request.headersDistinct.host?.length ?? 0) > 1 || !HOST.test(host)) return 400;
  // Kestrel takes these characters literally, and a URL would take a backslash for a slash.
  const [whole = '', rawPath = '', rawQuery = ''] = /^(\/[^?]*)(.*)$/s.exec(target) ?? [];
  const literal = rawPath.replaceAll('\\', '%5C') + rawQuery;
  const parsed = whole === '' ? null : URL.parse(`http://${host}${literal.replaceAll('#', '%23')}`);
  if (!parsed) return 400;
  const { pathname, search } = parsed;
  const path = decodePath(pathname);
  if (path.includes('\0')) return 400;
  const headers = readHeaders(rawHeaders);
  if (!headers) return 400;
  headers[PATH_AS_SENT] = target;
  return { path, url: new URL(`http://${host}${encodePath(path)}${search}`), headers };
}

/** Returns undefined if a value is not UTF-8. */
function readHeaders(rawHeaders: readonly string[]): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    try {
      const raw = rawHeaders[index + 1] ?? '';
      const value = ASCII.test(raw) ? raw : UTF_8.decode(Buffer.from(raw, 'latin1'));
      headers[name] = Object.hasOwn(headers, name) ? `${headers[name]},${value}` : value;
    } catch {
      return undefined;
    }
  }
  return headers;
}

/**
 * Lets a function read the body on demand, after it has checked the token and the declared length. The real host reads each
 * body before the call. Here, any web page that can reach this machine could then make this process hold a hundred
 * megabytes per request. A body of undeclared length is empty, as under the real host.
 */
export function deferBody(request: IncomingMessage): (inputs: readonly unknown[]) => void {
  const { headers } = request;
  const isThere = hasBody(request);
  let read: Promise<Buffer<ArrayBuffer>> | undefined;
  return ([input]) => {
    if (!isThere || typeof input !== 'object' || input === null) return;
    for (const name of BODY_READERS)
      Object.defineProperty(input, name, {
        value: async () => {
          // Never settles if the client is gone: the invocation has ended then.
          read ??= (buffer(request) as Promise<Buffer<ArrayBuffer>>).catch(() => new Promise(() => undefined));
          const type = headers['content-type'];
          return new Response(await read, type === undefined ? {} : { headers: { 'content-type': type } })[name]();
        },
      });
    Object.defineProperty(input, 'body', { get: () => Readable.toWeb(request) });
  };
}

/** Rejects with `ClientGone` if the connection ends before the whole request has arrived. */
export function watchClient(request: IncomingMessage): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  // The response may have been sent before.
  promise.catch(() => undefined);
  request.once('close', () => request.complete || reject(new ClientGone('The client is gone.')));
  return promise;
}

/** True if the request has a body that its function may read. */
export function hasBody({ method = '', headers }: IncomingMessage): boolean {
  return Number(headers['content-length'] ?? 0) > 0 && !['GET', 'HEAD'].includes(method);
}

/** True if the request has the key of the host. Compares in constant time. */
export function hasKey({ headers, url }: RequestHead, key: string): boolean {
  const given = headers['x-functions-key'] ?? url.searchParams.get('code') ?? '';
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(key));
}
