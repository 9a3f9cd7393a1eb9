import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { TableClient, type TransactionAction } from '@azure/data-tables';
import { AppendBlobClient } from '@azure/storage-blob';
import { parse } from 'csv-parse';
import pMap from 'p-map';
import { PLAIN_BLOB } from './plain.ts';

/**
 * A plain loop: reads a CSV file of door events and sends each hundred rows of a partition as one transaction. With
 * `--same-work` it writes the properties that the product adds, and appends a record of each row to a blob.
 */

const { BENCH_STORAGE = '' } = process.env;
const [, , , file = '', ...options] = process.argv;
const isSameWork = options.includes('--same-work');
const MAX_ROWS = 100;
/** As many transactions as the import command has in flight. */
const CONCURRENCY = 4;

const table = TableClient.fromConnectionString(BENCH_STORAGE, 'plaindoorevents', { allowInsecureConnection: true });
await table.createTable();
const log = new AppendBlobClient(BENCH_STORAGE, ...PLAIN_BLOB);

async function* batches(): AsyncGenerator<TransactionAction[]> {
  const waiting = new Map<string, TransactionAction[]>();
  for await (const row of createReadStream(file).pipe(parse({ columns: true }))) {
    const { department, employeeId, hour, eventId } = row;
    const partitionKey = `${department}_${employeeId}`;
    const batch = waiting.get(partitionKey) ?? [];
    waiting.set(partitionKey, batch);
    batch.push(['upsert', { partitionKey, rowKey: `${hour}_${eventId}`, ...row, ...addedProperties() }, 'Replace']);
    if (batch.length < MAX_ROWS) continue;
    waiting.delete(partitionKey);
    yield batch;
  }
  yield* waiting.values();
}

function addedProperties(): object {
  const id = randomUUID();
  return isSameWork ? { EntityType: 'doorevents', EntityVersion: 1, WriteId: id, Incarnation: id } : {};
}

async function send(batch: readonly TransactionAction[]): Promise<void> {
  const { subResponses } = await table.submitTransaction([...batch]);
  if (!isSameWork) return;
  const records = batch.map(
    ([, { partitionKey, rowKey, EntityType, EntityVersion, WriteId, Incarnation, ...row }], index) => {
      const change = { id: randomUUID(), at: new Date().toISOString(), by: 'bench', operation: 'put' };
      const place = { entity: 'doorevents', table: 'doorevents', partition: partitionKey, row: rowKey };
      return `${JSON.stringify({ ...change, ...place, fields: Object.keys(row), etag: subResponses[index]?.etag })}\n`;
    },
  );
  const block = Buffer.from(records.join(''));
  await log.appendBlock(block, block.length);
}

await pMap(batches(), send, { concurrency: CONCURRENCY });
