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

/**
 * An API that returns these statuses by path, and 404 elsewhere. Successive requests receive the statuses of a list
 * in order.
 */
async function api(statuses: Record<string, readonly number[]>): Promise<string> {
  const left = new Map(Object.entries(statuses).map(([path, list]) => [path, [...list]]));
  const server = createServer((request, response) => {
    const list = left.get(request.url ?? '') ?? [404];
    response.writeHead((list.length > 1 ? list.shift() : list[0]) ?? 404).end();
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

const WELL = { '/api/health': [200], '/api/openapi.json': [200], '/api/operations/poison': [401] };

describe('smoke test of a deployment', () => {
  test('passes if the API works, with or without /api in its address', async () => {
    const url = await api(WELL);
    for (const address of [url, `${url}/`, `${url}/api`, `${url}/api/`])
      expect(await smoke('--url', address, '--patience', '0')).toMatchObject({ code: 0, err: '' });
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
