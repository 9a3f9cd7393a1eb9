import { once } from 'node:events';
import { createServer } from 'node:http';
import { createPipelineRequest } from '@azure/core-rest-pipeline';
import { TableClient, type TableServiceClientOptions } from '@azure/data-tables';
import { reportCpu, respondWithRow, toConnectionString, toRowBody } from './cpu-rounds.ts';

/**
 * Prints what options of the SDK change in the CPU time of `getEntity`: first on a stub, then over connections to a server in
 * this process, whose CPU time is counted too.
 */

const FIELDS = 12;
const ROW = {
  PartitionKey: 'Sales',
  RowKey: 'empid_000001',
  ...Object.fromEntries(Array.from({ length: FIELDS }, (_, index) => [`field${index}`, `value ${index}`])),
};
const PASS_THROUGH = ['formDataPolicy', 'multipartPolicy', 'redirectPolicy', 'decompressResponsePolicy', 'logPolicy'];

const onStub = (options: TableServiceClientOptions = {}) =>
  open('http://h/a', { httpClient: respondWithRow(ROW), ...options });
const server = createServer((_, response) => {
  response.setHeader('content-type', 'application/json;odata=minimalmetadata').end(toRowBody(ROW));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const address = server.address();
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/a`;
const unkept = open(url);
unkept.pipeline.addPolicy({
  name: 'closeConnection',
  sendRequest(request, next) {
    request.disableKeepAlive = true;
    return next(request);
  },
});

await reportCpu({
  'getEntity, stub': read(onStub()),
  'with onResponse': read(onStub(), { onResponse: () => undefined }),
  'with disableTypeConversion': read(onStub(), { disableTypeConversion: true }),
  'without policies that pass a GET through': read(without(onStub(), PASS_THROUGH)),
  'pipeline and JSON.parse, no client': readByPipeline(onStub()),
});
await reportCpu({ 'getEntity, kept connection': read(open(url)), 'with disableKeepAlive': read(unkept) });
server.close();
server.closeAllConnections();

function open(at: string, options: TableServiceClientOptions = {}): TableClient {
  return TableClient.fromConnectionString(toConnectionString(at), 'rows', {
    allowInsecureConnection: true,
    ...options,
  });
}

/** The least that own code on the SDK's pipeline could do: sign, send and parse. */
function readByPipeline({ pipeline, url: account, tableName }: TableClient): () => Promise<unknown> {
  const row = `${account}/${tableName}(PartitionKey='${ROW.PartitionKey}',RowKey='${ROW.RowKey}')`;
  const httpClient = respondWithRow(ROW);
  return async () => {
    const request = createPipelineRequest({ url: row, allowInsecureConnection: true });
    const { bodyAsText } = await pipeline.sendRequest(httpClient, request);
    return JSON.parse(bodyAsText ?? '');
  };
}

function without(client: TableClient, policies: readonly string[]): TableClient {
  for (const name of policies) client.pipeline.removePolicy({ name });
  return client;
}

function read(client: TableClient, options: Parameters<TableClient['getEntity']>[2] = {}): () => Promise<unknown> {
  return () => client.getEntity(ROW.PartitionKey, ROW.RowKey, options);
}
