import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storageAccounts } from '../../kit/storage.ts';

/** As many reconcilers and requests as a busy process has. */
const CONCURRENT = 64;
let connections = 0;
const waiting: ServerResponse[] = [];
const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  if (request.url === '/together') {
    waiting.push(response);
    if (waiting.length === CONCURRENT) for (const each of waiting) each.end();
    return;
  }
  setTimeout(() => response.end('done'), request.url === '/slow' ? 600 : 0);
});
server.on('connection', () => {
  connections += 1;
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const agents = storageAccounts.createConnections(60_000);
function call(path: string, { http } = agents): Promise<number> {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  return new Promise((resolve, reject) => {
    get(url, { agent: http }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    }).on('error', reject);
  });
}

test('keeps a connection, and has others for https', async () => {
  await call('/');
  await call('/');
  expect(connections).toBe(1);
  expect(agents.https).not.toBe(agents.http);
});

test('waits for a slow response, and closes a connection that is idle', { tags: ['slow'] }, async () => {
  const hasty = storageAccounts.createConnections(200);
  expect(await call('/slow', hasty)).toBe(200);
  const { freeSockets } = hasty.http;
  await expect.poll(() => Object.keys(freeSockets)).toEqual([]);
  const before = connections;
  await call('/', hasty);
  expect(connections).toBe(before + 1);
});

test('lets no call wait for the connection of another call', async () => {
  // The server responds to none of them before it has received all.
  const statuses = await Promise.all(Array.from({ length: CONCURRENT }, () => call('/together')));
  expect(new Set(statuses)).toEqual(new Set([200]));
});
