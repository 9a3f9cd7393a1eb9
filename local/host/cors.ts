import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Handles CORS as the real host does if any origin is allowed: a preflight gets 204 before routing, and other responses get
 * the headers that let the page read them. Returns true if it has ended the response, which it does for a preflight.
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
  // A preflight of another origin also gets 204. The browser then blocks the page because the headers are missing.
  if (isPreflight) response.writeHead(204).end();
  return isPreflight;
}
