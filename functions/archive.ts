import { app } from '@azure/functions';
import { consumer } from '../lib/app.ts';
import { consumeTransfer } from '../lib/patterns/consume.ts';
import { ARCHIVE_QUEUE as queueName } from '../lib/patterns/intent.ts';
import { toMessage } from '../lib/queue-message.ts';

/** Archives and moves. */
app.storageQueue('archive', {
  queueName,
  connection: 'AzureWebJobsStorage',
  handler: async (body, context) => consumeTransfer(await consumer(context), toMessage(queueName, body, context)),
});
