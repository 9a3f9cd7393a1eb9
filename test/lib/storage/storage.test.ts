import { createHttpHeaders, type PipelineRequest } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { listBlobs } from '../../../lib/storage/append-blobs.ts';
import { listContainer, readBlob } from '../../../lib/storage/blobs.ts';
import { sendMessage } from '../../../lib/storage/messages.ts';
import { listTables } from '../../../lib/storage/provision.ts';
import { readRange, readRow } from '../../../lib/storage/rows.ts';
import { openStorage, type Storage } from '../../../lib/storage/storage.ts';

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
  await readRow(storage, { table: 'things', partition: 'one', row: '1' }).catch(() => undefined);
  expect(asked.map(({ allowInsecureConnection }) => allowInsecureConnection)).toEqual([isPlain]);
});

test.each<[string, (storage: Storage) => Promise<unknown>]>([
  ['a point query', (storage) => readRow(storage, { table: 'things', partition: 'one', row: '1' })],
  ['a range', (storage) => readRange(storage, { table: 'things', partition: 'one', from: '' })],
  ['a list of tables', (storage) => listTables(storage, 'things')],
  ['a message', (storage) => sendMessage(storage, 'things', {})],
  ['a blob', (storage) => readBlob(storage, { container: 'things', name: 'one' })],
  ['a list of blobs', (storage) => listBlobs(storage, { container: 'things', prefix: '' })],
  ['a container', (storage) => Array.fromAsync(listContainer(storage, 'things'))],
])('reports unavailable storage for %s', async (_, call) => {
  const httpClient = {
    sendRequest: async (request: PipelineRequest) => ({ request, status: 503, headers: createHttpHeaders() }),
  };
  const storage = openStorage({
    connectionString: `DefaultEndpointsProtocol=https;${key};${endpoints('https')}`,
    httpClient,
  });
  await expect(call(storage)).rejects.toMatchObject({ code: 'storage-unavailable', details: { retryAfter: 5 } });
});

test.each<[string, (storage: Storage) => Promise<unknown>]>([
  ['a point query', (storage) => readRow(storage, { table: 'things', partition: 'one', row: '1' })],
  ['a message', (storage) => sendMessage(storage, 'things', {})],
  ['a blob', (storage) => readBlob(storage, { container: 'things', name: 'one' })],
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
    await expect(call(storage)).rejects.toMatchObject({ code: 'storage-unavailable', details: { retryAfter: 5 } });
    expect(calls, String(status)).toBe(4);
  }
});

test.each([414, 431])('rejects a query whose URL is too long for storage: %d', async (status) => {
  const httpClient = {
    sendRequest: async (request: PipelineRequest) => ({ request, status, headers: createHttpHeaders() }),
  };
  const storage = openStorage({
    connectionString: `DefaultEndpointsProtocol=https;${key};${endpoints('https')}`,
    httpClient,
  });
  const query = readRange(storage, {
    table: 'things',
    partition: 'one',
    from: '',
    where: [{ name: 'name', operator: 'eq', values: ['x'] }],
  });
  await expect(query).rejects.toMatchObject({ code: 'invalid-input' });
});
