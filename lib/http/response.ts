import type { HttpResponseInit } from '@azure/functions';
import type { RouteResult, Spent } from './route.ts';

/**
 * The headers that a page of another origin may read besides the CORS-safelisted ones. The CORS settings of the platform
 * cannot expose headers.
 */
const EXPOSED_HEADERS = 'Content-Location, ETag, Link, Location, Retry-After, Server-Timing, WWW-Authenticate';
const COMMON_HEADERS = {
  'cache-control': 'private, no-cache',
  // Successes and errors depend on the caller.
  vary: 'Authorization',
  'x-content-type-options': 'nosniff',
  'access-control-expose-headers': EXPOSED_HEADERS,
};

/** The response with the headers that every response has. */
export function toResponse({ status, body, bytes, headers }: RouteResult, spent: Spent): HttpResponseInit {
  const timing = { 'server-timing': formatTiming(spent) };
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  return {
    status,
    headers: { ...COMMON_HEADERS, ...timing, ...content, ...headers },
    ...(bytes ? { body: bytes } : body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

/** The value of `Server-Timing`. */
export function formatTiming({ cost: { transactions, milliseconds }, audit }: Spent): string {
  const storage = `storage;dur=${milliseconds.toFixed(1)};desc="${transactions} transaction${transactions === 1 ? '' : 's'}"`;
  return audit === undefined ? storage : `${storage}, audit;dur=${audit.toFixed(1)};desc="appends, shared"`;
}
