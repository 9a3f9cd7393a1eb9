import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { TableClient, type TableEntity } from '@azure/data-tables';
import { AppendBlobClient } from '@azure/storage-blob';
import { QueueClient } from '@azure/storage-queue';

/**
 * What a developer writes without Rowkey: a bare HTTP handler for each task, which does the storage calls that the product
 * does, one after the other, with the SDKs as they are. Prints its port.
 */

const { BENCH_STORAGE = '' } = process.env;
const INSECURE = { allowInsecureConnection: true };
const HIDDEN_SECONDS = 120;
const PLAIN_BLOB = ['plain', 'audit'] as const;

const clients = new Map<string, TableClient>();
const queue = new QueueClient(BENCH_STORAGE, 'plain');
const log = new AppendBlobClient(BENCH_STORAGE, ...PLAIN_BLOB);

function table(name: string): TableClient {
  const client = clients.get(name) ?? TableClient.fromConnectionString(BENCH_STORAGE, name, INSECURE);
  clients.set(name, client);
  return client;
}

/** The rows of one new entity, in the order in which the product writes them. */
export interface PlainCreate {
  readonly message: string;
  readonly claims: readonly { readonly table: string; readonly entity: TableEntity }[];
  readonly rows: { readonly table: string; readonly entities: readonly TableEntity[] };
  readonly list: { readonly table: string; readonly entity: TableEntity };
  readonly record: string;
}

async function create({ message, claims, rows, list, record }: PlainCreate): Promise<void> {
  const sent = await queue.sendMessage(message, { visibilityTimeout: HIDDEN_SECONDS });
  for (const claim of claims) await table(claim.table).createEntity(claim.entity);
  await table(rows.table).submitTransaction(rows.entities.map((entity) => ['create', entity]));
  const { partitionKey = '', rowKey = '' } = list.entity;
  await table(list.table)
    .getEntity(partitionKey, rowKey)
    .catch(() => undefined);
  await table(list.table).upsertEntity(list.entity, 'Replace');
  for (const claim of claims) await table(claim.table).upsertEntity(claim.entity, 'Replace');
  const [entity] = rows.entities;
  await table(rows.table).getEntity(String(entity?.partitionKey), String(entity?.rowKey));
  await queue.deleteMessage(sent.messageId, sent.popReceipt);
  await log.appendBlock(record, Buffer.byteLength(record));
}

const server = createServer(async (request, response) => {
  try {
    const { searchParams, pathname } = new URL(request.url ?? '/', 'http://localhost');
    let body: unknown = {};
    if (pathname === '/row') {
      const [name, partition, row] = ['table', 'partition', 'row'].map((part) => searchParams.get(part) ?? '');
      body = await table(String(name)).getEntity(String(partition), String(row));
    } else await create((await json(request)) as PlainCreate);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(typeof address === 'object' && address ? address.port : 0);
});
