import { createHttpHeaders, type HttpClient } from '@azure/core-rest-pipeline';
import { trace } from '@opentelemetry/api';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Fault, faultyHttpClient } from '../../faulty-http-client.ts';
import { apiCalls } from '../../kit/api.ts';
import { storageAccounts, storageBlobs, storageRows } from '../../kit/storage.ts';
import { countedMetrics } from '../../metrics.ts';
import { testStorage } from '../../storage.ts';

const names: string[] = [];
const exporter = {
  export: (spans: readonly { name: string }[]) => void names.push(...spans.map(({ name }) => name)),
  shutdown: async () => undefined,
};
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
afterAll(() => trace.disable());
beforeEach(() => {
  names.length = 0;
});

const services = ['Table', 'Queue', 'Blob'] as const;
const at = (protocol: string, endpointOf: (service: string) => string) => {
  const endpoints = services.map((service) => `${service}Endpoint=${protocol}://${endpointOf(service.toLowerCase())};`);
  return `DefaultEndpointsProtocol=${protocol};AccountName=me;AccountKey=a2V5;${endpoints.join('')}`;
};

test.each([
  ['an emulator', at('http', () => 'azurite:10000/me')],
  ['an emulator with a certificate', at('https', () => '127.0.0.1:10000/me/')],
  ['an emulator that has the account in its host name', at('http', (service) => `me.${service}.localhost:10000`)],
  ['an account', at('https', (service) => `me.${service}.core.windows.net/`)],
])('the span of a call of %s names the table or the container but no key', async (_, connectionString) => {
  const httpClient = {
    sendRequest: async (request: object) =>
      ({ request, status: 404, headers: createHttpHeaders(), bodyAsText: '' }) as never,
  };
  const storage = storageAccounts.openStorage({ connectionString, httpClient });
  await storageRows.readRow(storage, { table: 'employees', partition: 'secret', row: 'secret' }).catch(() => undefined);
  await storageBlobs.readBlob(storage, { container: 'photos', name: 'secret/secret' }).catch(() => undefined);
  expect(names).toEqual(['table GET employees', 'blob GET photos']);
});

const counted = countedMetrics();
const connectionString = testStorage(import.meta.url);
const row = { table: 'responses', partition: 'secret', row: 'secret' };

/**
 * Counts the responses since the previous call, by `service resource status`. Only those of this file: the counts are those of the process,
 * in which a test of another file may have left work that is not yet done.
 */
async function responses(): Promise<Record<string, unknown>> {
  const points = await counted('rowkey.storage.responses');
  const own = points.filter(({ by }) => by.resource === 'responses');
  return Object.fromEntries(own.map(({ by, much }) => [`${by.service} ${by.resource} ${by.status}`, much]));
}

beforeAll(async () => {
  const storage = storageAccounts.openStorage({ connectionString });
  await storage.tables.createTable(row.table);
  for (const period of ['20261121', '202611']) await storage.tables.createTable(row.table + period);
  await storage.queue('responses').create();
});

test.each<[Fault, string]>([
  ['throttled', '429'],
  ['refused', '503'],
  ['server error', '500'],
  ['reset', 'none'],
])('counts a response by table and status: %s', async (fault, status) => {
  await responses();
  await storageRows
    .readRow(storageAccounts.openStorage({ connectionString, httpClient: faultyHttpClient(fault, 1) }), row)
    .catch(() => undefined);
  expect(await responses()).toMatchObject({ [`table responses ${status}`]: 1 });
});

test('waits 40 seconds for a response that has nothing to wait for', async () => {
  const waits: [string, number][] = [];
  const httpClient: HttpClient = {
    async sendRequest(request) {
      waits.push([new URL(request.url).hostname, request.timeout]);
      return { request, status: 404, headers: createHttpHeaders() };
    },
  };
  const connectionString = at('http', (service) => `${service}.example`);
  const storage = storageAccounts.openStorage({ connectionString, httpClient });
  await Promise.allSettled([
    storage.table('things').getEntity('p', 'r'),
    storage.queue('work').getProperties(),
    storage.container('files').getProperties(),
  ]);
  expect(Object.fromEntries(waits)).toEqual({
    'table.example': 40_000,
    'queue.example': 40_000,
    'blob.example': 40_000,
  });
});

test('counts a throttled response of a queue and its retry by queue', async () => {
  await responses();
  await storageAccounts
    .openStorage({ connectionString, httpClient: faultyHttpClient('refused', 1) })
    .queue('responses')
    .sendMessage('secret');
  expect(await responses()).toEqual({ 'queue responses 503': 1, 'queue responses 201': 1 });
});

test('counts a transaction by its table, and a rejected one by the status of the failed action', async () => {
  const storage = storageAccounts.openStorage({ connectionString, httpClient: faultyHttpClient('refused', 1) });
  const transaction = {
    table: row.table,
    partition: 'secret',
    actions: ['a', 'b'].map((key) => ({ kind: 'insert' as const, row: key, properties: {} })),
  };
  await responses();
  await storageRows.submit(storage, transaction);
  expect(await responses()).toEqual({ 'table responses 503': 1, 'table responses 204': 1 });
  await expect(storageRows.submit(storage, transaction)).rejects.toMatchObject({ reason: 'exists' });
  expect(await responses()).toEqual({ 'table responses 409': 1 });
});

test('counts each attempt of a request by its pattern and its operation', async () => {
  const storage = storageAccounts.openStorage({ connectionString, httpClient: faultyHttpClient('refused', 1) });
  await responses();
  await apiCalls.inPattern('a pattern', () => storageRows.readRow(storage, row))();
  expect(await counted('rowkey.storage.transactions')).toContainEqual({
    by: { pattern: 'a pattern', operation: 'table GET' },
    much: 2,
  });
});

test.each(['20261121', '202611'])('counts the table of a period, %s, under the name without it', async (period) => {
  await responses();
  await storageRows.readRow(storageAccounts.openStorage({ connectionString }), { ...row, table: row.table + period });
  expect(await responses()).toEqual({ 'table responses 404': 1 });
});
