import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** Serves a built console at `/console/`, under the content security policy that the product uses. */
export async function serveConsole(apiUrl: () => string) {
  const folder = fileURLToPath(new URL('../dist/console', import.meta.url));
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    const name = pathname.replace(/^\/console\/?/, '') || 'index.html';
    if (name === 'config.json') {
      const config = { issuer: 'http://127.0.0.1:1', clientId: 'console', scope: 'openid', apiUrl: apiUrl() };
      return response.setHeader('content-type', 'application/json').end(JSON.stringify(config));
    }
    const bytes = await readFile(join(folder, name)).catch(() => undefined);
    if (!bytes) return response.writeHead(404).end();
    response.setHeader('content-type', TYPES[extname(name)] ?? 'application/octet-stream');
    response.setHeader(
      'content-security-policy',
      "default-src 'self'; connect-src 'self' http:; img-src 'self' data: blob: http:; frame-ancestors 'none'; base-uri 'none'",
    );
    response.end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, stop: () => server.close() };
}
