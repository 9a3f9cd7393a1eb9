import { createHttpHeaders } from '@azure/core-rest-pipeline';
import { trace } from '@opentelemetry/api';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { readBlob } from '../../../lib/storage/blobs.ts';
import { readRow } from '../../../lib/storage/rows.ts';
import { openStorage } from '../../../lib/storage/storage.ts';

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
])('the span of a call of %s names the table or the container, and no key', async (_, connectionString) => {
  const httpClient = {
    sendRequest: async (request: object) =>
      ({ request, status: 404, headers: createHttpHeaders(), bodyAsText: '' }) as never,
  };
  const storage = openStorage({ connectionString, httpClient });
  await readRow(storage, { table: 'employees', partition: 'secret', row: 'secret' }).catch(() => undefined);
  await readBlob(storage, { container: 'photos', name: 'secret/secret' }).catch(() => undefined);
  expect(names).toEqual(['table GET employees', 'blob GET photos']);
});
