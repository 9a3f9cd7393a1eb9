// @module-tag long

import { globSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { createHttpHeaders, type PipelineRequest, RestError } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { openStorage, type Storage } from '../../../lib/storage/storage.ts';
import { type Action, storageBlobs, storageQueues, storageRows, storageTables } from '../../kit/storage.ts';

const key = 'AccountName=me;AccountKey=a2V5';
const endpoints = (protocol: string) =>
  ['Table', 'Queue', 'Blob'].map((service) => `${service}Endpoint=${protocol}://azurite:10000/me`).join(';');

test.each([
  [`DefaultEndpointsProtocol=http;${key};${endpoints('http')}`, true],
  [`${key};${endpoints('http')};DefaultEndpointsProtocol=http`, true],
  [`DefaultEndpointsProtocol=https;${key};${endpoints('https')}`, false],
  [`DefaultEndpointsProtocol=https;${key};EndpointSuffix=core.usgovcloudapi.net`, false],
])('uses plain HTTP with %s: %s', async (connectionString, isPlain) => {
  const asked: PipelineRequest[] = [];
  const httpClient = {
    async sendRequest(request: PipelineRequest) {
      asked.push(request);
      return { request, status: 404, headers: createHttpHeaders() };
    },
  };
  const storage = openStorage({ connectionString, httpClient });
  await storageRows.readRow(storage, { table: 'things', partition: 'one', row: '1' }).catch(() => undefined);
  expect(asked.map(({ allowInsecureConnection }) => allowInsecureConnection)).toEqual([isPlain]);
});

test.each<[string, (storage: Storage) => Promise<unknown>]>([
  ['a point query', (storage) => storageRows.readRow(storage, { table: 'things', partition: 'one', row: '1' })],
  ['a range', (storage) => storageRows.readRange(storage, { table: 'things', partition: 'one', from: '' })],
  ['a list of tables', (storage) => storageTables.listTables(storage, 'things')],
  ['a message', (storage) => storageQueues.sendMessage(storage, 'things', {})],
  ['a blob', (storage) => storageBlobs.readBlob(storage, { container: 'things', name: 'one' })],
  ['a list of blobs', (storage) => storageBlobs.listBlobs(storage, { container: 'things', prefix: '' })],
  ['a container', (storage) => Array.fromAsync(storageBlobs.listContainer(storage, 'things'))],
])('reports unavailable storage for %s', { tags: ['slow'] }, async (_, call) => {
  const httpClient = {
    sendRequest: async (request: PipelineRequest) => ({ request, status: 503, headers: createHttpHeaders() }),
  };
  const storage = openStorage({
    connectionString: `DefaultEndpointsProtocol=https;${key};${endpoints('https')}`,
    httpClient,
  });
  await expect(call(storage)).rejects.toMatchObject({ code: 'storage-unavailable', retryAfter: 5 });
});

test.each<[string, (storage: Storage) => Promise<unknown>]>([
  ['a point query', (storage) => storageRows.readRow(storage, { table: 'things', partition: 'one', row: '1' })],
  ['a message', (storage) => storageQueues.sendMessage(storage, 'things', {})],
  ['a blob', (storage) => storageBlobs.readBlob(storage, { container: 'things', name: 'one' })],
])('retries a 429 without Retry-After three times like a 503: %s', async (_, call) => {
  for (const status of [429, 503]) {
    let calls = 0;
    const httpClient = {
      async sendRequest(request: PipelineRequest) {
        calls += 1;
        return { request, status, headers: createHttpHeaders() };
      },
    };
    const storage = openStorage({
      connectionString: `DefaultEndpointsProtocol=https;${key};${endpoints('https')}`,
      httpClient,
    });
    await expect(call(storage)).rejects.toMatchObject({ code: 'storage-unavailable', retryAfter: 5 });
    expect(calls, String(status)).toBe(4);
  }
});

const insert: Action = { kind: 'insert', row: '1', properties: {} };
const merge: Action = { kind: 'merge', row: '2', properties: {}, etag: 'W/"1"' };
const remove: Action = { kind: 'delete', row: '3' };
const removeOne: Action = { ...remove, etag: 'W/"1"' };

test.each<[string, Action[], Record<string, number>]>([
  ['an insert', [insert], { ECONNRESET: 1, 500: 1, 503: 4, ECONNREFUSED: 4 }],
  ['a delete of any version', [remove], { ECONNRESET: 1, 500: 1, 503: 4, ECONNREFUSED: 4 }],
  ['a merge into any version', [{ ...merge, etag: '*' }], { ECONNRESET: 1, 500: 1 }],
  ['a transaction of an insert and a delete', [insert, removeOne], { ECONNRESET: 1, 500: 1 }],
  ['a delete of one version', [removeOne], { ECONNRESET: 4, 500: 4 }],
  ['a transaction that requires an ETag', [insert, merge], { ECONNRESET: 4, 500: 4 }],
])('sends %s again only if storage cannot execute it twice', { tags: ['slow'] }, async (_, actions, expected) => {
  for (const [fault, times] of Object.entries(expected)) {
    const urls = new Set<string>();
    let calls = 0;
    const httpClient = {
      async sendRequest(request: PipelineRequest) {
        calls += 1;
        urls.add(new URL(request.url).search);
        if (Number.isNaN(Number(fault))) throw new RestError(fault, { code: fault, request });
        return { request, status: Number(fault), headers: createHttpHeaders() };
      },
    };
    const connectionString = `DefaultEndpointsProtocol=https;${key};${endpoints('https')}`;
    const storage = openStorage({ connectionString, httpClient });
    const written = storageRows.submit(storage, { table: 'things', partition: 'one', actions });
    await expect(written).rejects.toMatchObject({ code: 'storage-unavailable' });
    expect(calls, fault).toBe(times);
    // The service stops working on a write that nobody waits for.
    expect([...urls], fault).toEqual(['?timeout=15']);
  }
});

test('sends an insert again if the connection ends before its handshake', { tags: ['slow'] }, async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.once('data', () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const at = endpoints('https').replaceAll('azurite:10000', `127.0.0.1:${port}`);
  const storage = openStorage({ connectionString: `DefaultEndpointsProtocol=https;${key};${at}` });
  const written = storageRows.submit(storage, { table: 'things', partition: 'one', actions: [insert] });
  await expect(written).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(connections).toBe(4);
  server.close();
});

test.each([414, 431])('rejects a query whose URL is too long for storage: %d', async (status) => {
  const httpClient = {
    sendRequest: async (request: PipelineRequest) => ({ request, status, headers: createHttpHeaders() }),
  };
  const storage = openStorage({
    connectionString: `DefaultEndpointsProtocol=https;${key};${endpoints('https')}`,
    httpClient,
  });
  const query = storageRows.readRange(storage, {
    table: 'things',
    partition: 'one',
    from: '',
    where: [{ name: 'name', operator: 'eq', values: ['x'] }],
  });
  await expect(query).rejects.toMatchObject({ code: 'invalid-input' });
});

test('no other room knows the SDKs of tables, queues and blobs', () => {
  const knowing = globSync('lib/**/*.ts').filter((file) =>
    /'@azure\/(data-tables|storage-)/.test(readFileSync(file, 'utf8')),
  );
  expect(knowing.length).toBeGreaterThan(3);
  expect(knowing.filter((file) => !file.startsWith('lib/storage/'))).toEqual([]);
});
