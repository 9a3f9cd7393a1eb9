import { AzureNamedKeyCredential, generateTableSas, TableClient, type TableEntity } from '@azure/data-tables';
import { AppendBlobClient, BlobServiceClient, type ContainerClient } from '@azure/storage-blob';
import { QueueClient, QueueServiceClient } from '@azure/storage-queue';

/**
 * What a developer writes without Rowkey: the storage calls that the product does, one after the other, with the SDKs as
 * they are.
 */

const INSECURE = { allowInsecureConnection: true };
const HIDDEN_SECONDS = 120;
export const PLAIN_QUEUE = 'plain';
/** The blob of records. */
export const PLAIN_BLOB = ['plain', 'audit'] as const;

/** The rows of one new entity, in the order in which the product writes them. */
export interface PlainCreate {
  readonly message: string;
  readonly claims: readonly { readonly table: string; readonly entity: TableEntity }[];
  readonly rows: { readonly table: string; readonly entities: readonly TableEntity[] };
  readonly list?: { readonly table: string; readonly entity: TableEntity };
  readonly record?: string;
}

/** A message that says which row has changed, and which row of an index has to agree with it. */
export interface PlainChange {
  readonly source: { readonly table: string; readonly partition: string; readonly row: string };
  readonly entry: { readonly table: string; readonly partition: string; readonly row: string };
  /** A hidden copy of the message. With it, the plain code does every storage call of the product. */
  readonly reminder?: { readonly id: string; readonly popReceipt: string };
}

export interface PlainCode {
  readRow(table: string, partition: string, row: string): Promise<object>;
  writeRow(table: string, row: TableEntity): Promise<unknown>;
  create(body: PlainCreate): Promise<void>;
  /** Sends a change to the queue. */
  announce(change: PlainChange, options: { readonly isReminded: boolean }): Promise<void>;
  /** Reads the entity and writes its index entry. Whoever calls receives and deletes the message. */
  reconcile(change: PlainChange): Promise<void>;
}

export function createPlainCode(connectionString: string): PlainCode {
  const clients = new Map<string, TableClient>();
  const queue = new QueueClient(connectionString, PLAIN_QUEUE);
  const log = new AppendBlobClient(connectionString, ...PLAIN_BLOB);

  function table(name: string): TableClient {
    const client = clients.get(name) ?? TableClient.fromConnectionString(connectionString, name, INSECURE);
    clients.set(name, client);
    return client;
  }

  return {
    readRow: (name, partition, row) => table(name).getEntity(partition, row),
    writeRow: (name, row) => table(name).upsertEntity(row, 'Replace'),
    async create({ message, claims, rows, list, record }) {
      const sent = await queue.sendMessage(message, { visibilityTimeout: HIDDEN_SECONDS });
      for (const claim of claims) await table(claim.table).createEntity(claim.entity);
      await table(rows.table).submitTransaction(rows.entities.map((entity) => ['create', entity]));
      if (list) {
        const { partitionKey = '', rowKey = '' } = list.entity;
        await table(list.table)
          .getEntity(partitionKey, rowKey)
          .catch(() => undefined);
        await table(list.table).upsertEntity(list.entity, 'Replace');
      }
      for (const claim of claims) await table(claim.table).upsertEntity(claim.entity, 'Replace');
      const [entity] = rows.entities;
      await table(rows.table).getEntity(String(entity?.partitionKey), String(entity?.rowKey));
      await queue.deleteMessage(sent.messageId, sent.popReceipt);
      if (record) await log.appendBlock(record, Buffer.byteLength(record));
    },
    async announce(change, { isReminded }) {
      if (!isReminded) return void (await queue.sendMessage(JSON.stringify(change)));
      const hidden = await queue.sendMessage(JSON.stringify(change), { visibilityTimeout: HIDDEN_SECONDS });
      const reminder = { id: hidden.messageId, popReceipt: hidden.popReceipt };
      await queue.sendMessage(JSON.stringify({ ...change, reminder }));
    },
    async reconcile({ reminder, source, entry }) {
      const { etag: _, timestamp: __, ...entity } = await table(source.table).getEntity(source.partition, source.row);
      const keys = { partitionKey: entry.partition, rowKey: entry.row };
      await table(entry.table).upsertEntity({ ...entity, ...keys }, 'Replace');
      if (!reminder) return;
      await table(source.table).getEntity(source.partition, source.row);
      await queue.deleteMessage(reminder.id, reminder.popReceipt);
    },
  };
}

const VALID_FOR_MS = 600_000;

/** Signs a shared access signature for one row. */
export function plainSigner(connectionString = '') {
  const read = (name: string) => new RegExp(`${name}=([^;]+)`).exec(connectionString)?.[1] ?? '';
  const credential = new AzureNamedKeyCredential(read('AccountName'), read('AccountKey'));
  return ({ table, partition, row }: PlainChange['source']): string => {
    const startsOn = new Date();
    return generateTableSas(table, credential, {
      permissions: { query: true },
      startsOn,
      expiresOn: new Date(startsOn.getTime() + VALID_FOR_MS),
      startPartitionKey: partition,
      endPartitionKey: partition,
      startRowKey: row,
      endRowKey: row,
    });
  };
}

/** Creates the queue and the container that the plain code uses. Returns the container. */
export async function createPlainResources(storage: string): Promise<ContainerClient> {
  await QueueServiceClient.fromConnectionString(storage).createQueue(PLAIN_QUEUE);
  const [container, blob] = PLAIN_BLOB;
  const blobs = BlobServiceClient.fromConnectionString(storage).getContainerClient(container);
  await blobs.create();
  await blobs.getAppendBlobClient(blob).create();
  return blobs;
}
