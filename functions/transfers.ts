import { app } from '@azure/functions';
import { consumer } from '../lib/app.ts';
import { consumeTransfer } from '../lib/engine/consume/consume.ts';
import { toMessage } from '../lib/engine/consume/queue-message.ts';
import { TRANSFERS_QUEUE as queueName } from '../lib/engine/reconcile/intent.ts';

/** Archives and moves. */
app.storageQueue('transfers', {
  queueName,
  connection: 'AzureWebJobsStorage',
  handler: async (body, context) => consumeTransfer(await consumer(context), toMessage(queueName, body, context)),
});
