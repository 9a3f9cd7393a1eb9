import { createReadStream } from 'node:fs';
import { TableClient, type TransactionAction } from '@azure/data-tables';
import { parse } from 'csv-parse';
import pMap from 'p-map';

/** A plain loop: reads a CSV file of door events and sends each hundred rows of a partition as one transaction. */

const { BENCH_STORAGE = '' } = process.env;
const [, , , file = ''] = process.argv;
const MAX_ROWS = 100;
/** As many transactions as the import command has in flight. */
const CONCURRENCY = 4;
const LINES_EVERY_ROWS = 1_000;

const table = TableClient.fromConnectionString(BENCH_STORAGE, 'plaindoorevents', { allowInsecureConnection: true });
await table.createTable();

async function* batches(): AsyncGenerator<TransactionAction[]> {
  const waiting = new Map<string, TransactionAction[]>();
  let read = 0;
  for await (const row of createReadStream(file).pipe(parse({ columns: true }))) {
    const { department, employeeId, hour, eventId } = row;
    const partitionKey = `${department}_${employeeId}`;
    const batch = waiting.get(partitionKey) ?? [];
    waiting.set(partitionKey, batch);
    batch.push(['upsert', { partitionKey, rowKey: `${hour}_${eventId}`, ...row }, 'Replace']);
    if (++read % LINES_EVERY_ROWS === 0) console.log(`${read} rows read`);
    if (batch.length < MAX_ROWS) continue;
    waiting.delete(partitionKey);
    yield batch;
  }
  yield* waiting.values();
}

await pMap(batches(), (batch) => table.submitTransaction(batch), { concurrency: CONCURRENCY });
