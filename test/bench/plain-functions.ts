import { app } from '@azure/functions';
import { createPlainCode, PLAIN_QUEUE, type PlainChange, type PlainCreate } from './plain.ts';

/** The plain code as Azure functions, which run under the same host as the product. */

const connection = 'AzureWebJobsStorage';
const code = createPlainCode(process.env[connection] ?? '');

app.http('health', { methods: ['GET'], route: 'api/health', authLevel: 'anonymous', handler: () => ({ status: 200 }) });
app.http('row', {
  methods: ['GET'],
  route: 'api/row',
  authLevel: 'anonymous',
  async handler({ query }) {
    const [table = '', partition = '', row = ''] = ['table', 'partition', 'row'].map((part) => query.get(part) ?? '');
    return { jsonBody: await code.readRow(table, partition, row) };
  },
});
app.http('create', {
  methods: ['POST'],
  route: 'api/create',
  authLevel: 'anonymous',
  async handler(request) {
    await code.create((await request.json()) as PlainCreate);
    return { jsonBody: {} };
  },
});
app.storageQueue('reconcile', {
  queueName: PLAIN_QUEUE,
  connection,
  // The host parses a message that is JSON.
  handler: (message) => code.reconcile(message as PlainChange),
});
