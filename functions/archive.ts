import { app } from '@azure/functions';
import { consumer } from '../lib/app.ts';
import { consumeTransfer } from '../lib/engine/consume/consume.ts';
import { toMessage } from '../lib/engine/consume/queue-message.ts';
import { ARCHIVE_QUEUE as queueName } from '../lib/engine/reconcile/intent.ts';

/** Archives and moves. */
app.storageQueue('archive', {
  queueName,
  connection: 'AzureWebJobsStorage',
  handler: async (body, context) => consumeTransfer(await consumer(context), toMessage(queueName, body, context)),
});
