import { createHttpHeaders, type PipelineRequest } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { readRow } from '../../../lib/storage/rows.ts';
import { openStorage } from '../../../lib/storage/storage.ts';

const key = 'AccountName=me;AccountKey=a2V5';
const endpoints = (protocol: string) =>
  ['Table', 'Queue', 'Blob'].map((service) => `${service}Endpoint=${protocol}://azurite:10000/me`).join(';');

test.each([
  [`DefaultEndpointsProtocol=http;${key};${endpoints('http')}`, true],
  [`${key};${endpoints('http')};DefaultEndpointsProtocol=http`, true],
  [`DefaultEndpointsProtocol=https;${key};${endpoints('https')}`, false],
  [`DefaultEndpointsProtocol=https;${key};EndpointSuffix=core.usgovcloudapi.net`, false],
])('plain HTTP is spoken with %s: %s', async (connectionString, isPlain) => {
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
