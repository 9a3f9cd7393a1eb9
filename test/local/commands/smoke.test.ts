import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../../local/commands/smoke.ts', import.meta.url));
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const DESCRIPTION = {
  security: [{ token: ['reader'] }],
  paths: {
    '/api/health': { get: { security: [] } },
    '/api/employees/{department}/{employeeId}': { parameters: [], get: {}, put: { security: [{ token: ['hr'] }] } },
    '/api/operations/poison': { get: { security: [{ token: ['operator'] }] } },
    '/api/operations/rewrap/{entity}': { parameters: [{ $ref: '#/components/parameters/entity' }], post: {} },
    '/api/operations/verify/{kind}': { get: { parameters: [{ name: 'kind', schema: { enum: ['people'] } }] } },
  },
  components: {
    parameters: { entity: { name: 'entity', schema: { $ref: '#/components/schemas/rewrap-entity' } } },
    schemas: { 'rewrap-entity': { enum: ['employees', 'people'] } },
  },
};

/**
 * An API that returns these statuses by path, or by method and path, and 404 elsewhere. Successive requests receive the
 * statuses of a list in order.
 */
async function api(
  statuses: Record<string, readonly number[]>,
  description: object = DESCRIPTION,
  health: object = { status: 'ok' },
): Promise<string> {
  const bodies: Readonly<Record<string, object>> = { '/api/openapi.json': description, '/api/health': health };
  const left = new Map(Object.entries(statuses).map(([path, list]) => [path, [...list]]));
  const server = createServer(({ method, url = '' }, response) => {
    const list = left.get(`${method} ${url}`) ?? left.get(url) ?? [404];
    const status = (list.length > 1 ? list.shift() : list[0]) ?? 404;
    response.writeHead(status).end(JSON.stringify(bodies[url]));
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function smoke(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SCRIPT, ...args], (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, out, err }),
    );
  });
}

const WELL = {
  '/api/health': [200],
  '/api/openapi.json': [200],
  '/api/operations/poison': [401],
  '/api/employees/x/x': [401],
  'POST /api/operations/rewrap/employees': [401],
  '/api/operations/verify/people': [401],
};

describe('smoke test of a deployment', () => {
  test('passes if the API works, with or without /api in its address', async () => {
    const url = await api(WELL);
    for (const address of [url, `${url}/`, `${url}/api`, `${url}/api/`])
      expect(await smoke('--url', address, '--patience', '0')).toMatchObject({ code: 0, err: '' });
  });

  test('fails if the description has no route that needs a token', async () => {
    const { code, err } = await smoke('--url', await api(WELL, { paths: {} }), '--patience', '0');
    expect(code).toBe(1);
    expect(err).toContain('describes no route that needs a token');
  });

  test('fails if the API serves without one of its storage accounts', async () => {
    const health = {
      status: 'degraded',
      storage: 'unavailable',
      accounts: [{ name: 'second', storage: 'unavailable' }],
    };
    const { code, err } = await smoke('--url', await api(WELL, DESCRIPTION, health), '--patience', '0');
    expect(code).toBe(1);
    expect(err).toContain('/api/health did not return 200 within 0 s; last result: 200, degraded.');
  });

  test('waits for an app that is still loading', async () => {
    const url = await api({ ...WELL, '/api/health': [503, 200] });
    const { code, out } = await smoke('--url', url, '--patience', '30');
    expect(code).toBe(0);
    expect(out).toContain('/api/health returned 200');
  });

  test.each([
    [
      'storage does not respond',
      { ...WELL, '/api/health': [503] },
      '/api/health did not return 200 within 0 s; last result: 503',
    ],
    ['the app is missing', {}, '/api/health did not return 200 within 0 s; last result: 404'],
    ['the OpenAPI description fails', { ...WELL, '/api/openapi.json': [500] }, '/api/openapi.json did not return 200'],
    ['poison messages are listed without a token', { ...WELL, '/api/operations/poison': [200] }, 'did not return 401'],
    [
      'the host did not load a route',
      { ...WELL, 'GET /api/employees/x/x': [405] },
      '/api/employees/x/x did not return 401 within 0 s; last result: 405',
    ],
    [
      'the host did not load the route of a method',
      { ...WELL, 'PUT /api/employees/x/x': [404] },
      '/api/employees/x/x did not return 401 within 0 s; last result: 404',
    ],
  ])('fails if %s', async (_, statuses, message) => {
    const { code, err } = await smoke('--url', await api(statuses), '--patience', '0');
    expect(code).toBe(1);
    expect(err).toContain(message);
  });

  test('prints the hint of an app with invalid settings', async () => {
    const body = JSON.stringify({ status: 'degraded', settings: 'refused', hint: 'A setting is not usable.' });
    const server = createServer((_, response) => response.writeHead(503).end(body));
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, err } = await smoke('--url', url, '--patience', '0');
    expect(code).toBe(1);
    expect(err).toContain('last result: 503. A setting is not usable.');
  });

  test('prints the reason if no program listens on the port', async () => {
    // A fixed port: another process could have taken over a released ephemeral port.
    const { code, err } = await smoke('--url', 'http://127.0.0.1:2', '--patience', '0');
    expect(code).toBe(1);
    expect(err).toMatch(/last result: .*ECONNREFUSED/);
  });

  test.each([
    [[]],
    [['--url', 'example.org']],
    [['--url', 'http://127.0.0.1', '--patience', 'long']],
    [['--host', 'x']],
  ])('prints its usage when called with %j', async (args) => {
    const { code, err } = await smoke(...args);
    expect(code).toBe(1);
    expect(err).toMatch(/^Usage: /);
  });
});
