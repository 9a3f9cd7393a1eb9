import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Answers a request of a page of another origin as the real host does, where origins are allowed at all: a preflight gets
 * 204 before any function is looked for, and any other answer says who may read it. Answers whether it was a preflight.
 * https://github.com/dotnet/aspnetcore/blob/main/src/Middleware/CORS/src/Infrastructure/CorsService.cs
 */
export function handleCors(
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[],
): boolean {
  const { origin, 'access-control-request-method': asked, 'access-control-request-headers': askedHeaders } = headers;
  if (origins.length === 0 || origin === undefined) return false;
  const isPreflight = method === 'OPTIONS' && asked !== undefined;
  const isAny = origins.includes('*');
  if (isAny || origins.includes(origin)) {
    if (origins.length > 1) response.setHeader('vary', 'Origin');
    response.setHeader('access-control-allow-origin', isAny ? '*' : origin);
    if (isPreflight) response.setHeader('access-control-allow-methods', asked);
    if (isPreflight && askedHeaders) response.setHeader('access-control-allow-headers', askedHeaders);
  }
  // Of an origin that is not allowed as well: what makes the browser refuse it is that nothing is said.
  if (isPreflight) response.writeHead(204).end();
  return isPreflight;
}
